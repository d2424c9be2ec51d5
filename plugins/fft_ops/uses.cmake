# Its C++ header alone, which is of both types; the library that comes with it is of f32.
find_path(KISSFFT_FOLDER kissfft/kissfft.hh)
if(KISSFFT_FOLDER)
  add_library(kissfft_header INTERFACE)
  target_include_directories(kissfft_header SYSTEM INTERFACE ${KISSFFT_FOLDER})
  set(uses kissfft_header)
else()
  set(missing libkissfft-dev)
endif()
