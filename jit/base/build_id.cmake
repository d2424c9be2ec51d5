# Writes OUT (only when it changes): the build id as a C++ constant.
cmake_policy(SET CMP0009 NEW)  # where a policy is not set, a glob warns
file(GLOB_RECURSE sources LIST_DIRECTORIES false
  ${SOURCE_DIR}/jit/*.cpp ${SOURCE_DIR}/jit/*.h ${SOURCE_DIR}/jit/*.def ${SOURCE_DIR}/runtime/*.cpp ${SOURCE_DIR}/runtime/*.h
  ${SOURCE_DIR}/abi/*.cpp ${SOURCE_DIR}/abi/*.h ${SOURCE_DIR}/CMakeLists.txt ${SOURCE_DIR}/*/CMakeLists.txt)
list(SORT sources)
execute_process(COMMAND ${LLVM_CONFIG} --version --build-mode --assertion-mode OUTPUT_VARIABLE llvm COMMAND_ERROR_IS_FATAL ANY)
set(all "${COMPILER}\n${FLAGS}\n${llvm}\n")
foreach(source IN LISTS sources)
  file(SHA256 ${source} digest)
  file(RELATIVE_PATH name ${SOURCE_DIR} ${source})
  string(APPEND all "${name} ${digest}\n")
endforeach()
string(SHA256 id "${all}")
string(SUBSTRING ${id} 0 32 id)
set(text "#include \"jit/base/build_id.h\"\nnamespace kiln {\nconst char *const build_id_text = \"${id}\";\n}  // namespace kiln\n")
if(EXISTS ${OUT})
  file(READ ${OUT} old)
endif()
if(NOT "${old}" STREQUAL "${text}")
  file(WRITE ${OUT} "${text}")
endif()
