# What `cmake --install` puts where, besides the programs and modules that their own folders install: headers, library,
# CMake package, pkg-config file. All paths are relative, so that an installed tree can be moved.
include(CMakePackageConfigHelpers)
set(KILN_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)
set(KILN_PC_DIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(DIRECTORY ${CMAKE_SOURCE_DIR}/abi/include/kiln DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(CODE "set(KILN_SOURCE \"${CMAKE_SOURCE_DIR}\")
set(KILN_TO \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/doc/kiln\")")
install(SCRIPT ${CMAKE_SOURCE_DIR}/cmake/install_docs.cmake)
install(TARGETS kiln EXPORT kilnTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT kilnTargets NAMESPACE kiln:: DESTINATION ${KILN_CMAKE_DIR})

configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/kilnConfig.cmake.in ${CMAKE_BINARY_DIR}/generated/kilnConfig.cmake
                              INSTALL_DESTINATION ${KILN_CMAKE_DIR} PATH_VARS KILN_PLUGIN_DIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/kilnConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/kilnConfig.cmake ${CMAKE_BINARY_DIR}/generated/kilnConfigVersion.cmake
        DESTINATION ${KILN_CMAKE_DIR})

file(RELATIVE_PATH KILN_PC_PREFIX /${KILN_PC_DIR} /)
configure_file(${CMAKE_SOURCE_DIR}/cmake/kiln.pc.in ${CMAKE_BINARY_DIR}/generated/kiln.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/kiln.pc DESTINATION ${KILN_PC_DIR})
