# Debian's package has a file for CMake, which looks for headers of OpenCL that the CPU's half does without.
find_library(ONEDNN_LIBRARY dnnl)
find_path(ONEDNN_HEADERS oneapi/dnnl/dnnl.hpp)
if(ONEDNN_LIBRARY AND ONEDNN_HEADERS)
  set(uses ${ONEDNN_LIBRARY})
else()
  set(missing libdnnl-dev)
endif()
