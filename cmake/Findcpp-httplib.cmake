# cpp-httplib as Debian packages it: a shared library without a CMake configuration, built with TLS and with compression.
# Defines cpp-httplib::cpp-httplib.
find_path(HTTPLIB_INCLUDE_DIR httplib.h)
find_library(HTTPLIB_LIBRARY cpp-httplib)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(cpp-httplib REQUIRED_VARS HTTPLIB_LIBRARY HTTPLIB_INCLUDE_DIR)
if(cpp-httplib_FOUND AND NOT TARGET cpp-httplib::cpp-httplib)
  add_library(cpp-httplib::cpp-httplib UNKNOWN IMPORTED)
  set_target_properties(cpp-httplib::cpp-httplib PROPERTIES IMPORTED_LOCATION ${HTTPLIB_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${HTTPLIB_INCLUDE_DIR}
    INTERFACE_COMPILE_DEFINITIONS CPPHTTPLIB_OPENSSL_SUPPORT
    INTERFACE_LINK_LIBRARIES OpenSSL::SSL)
endif()
mark_as_advanced(HTTPLIB_INCLUDE_DIR HTTPLIB_LIBRARY)
