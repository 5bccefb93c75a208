cmake_policy(SET CMP0057 NEW)  # IN_LIST; `cmake --install` runs this file without a project
# Installs `headers` and those that they include, from the first of `roots` that has them, with their folders below
# `destination`.
set(installed)
while(headers)
  list(POP_FRONT headers header)
  if(header IN_LIST installed)
    continue()
  endif()
  list(APPEND installed ${header})
  find_file(path ${header} PATHS ${roots} NO_DEFAULT_PATH NO_CACHE REQUIRED)
  file(STRINGS ${path} includes REGEX "^#include \"")
  list(TRANSFORM includes REPLACE "^#include \"([^\"]*)\".*" "\\1")
  list(APPEND headers ${includes})
  cmake_path(GET header PARENT_PATH folder)
  file(INSTALL ${path} DESTINATION ${destination}/${folder})
  unset(path)
endwhile()
