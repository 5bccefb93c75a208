# leeway_schemas(SOURCES schema... [STEMS name...]): generates C++ from the schemas of this folder into generated/ of the
# build folder, and sets SOURCES to what a library compiles. messages/generator/README.md lists the files. STEMS are the
# schemas' $stem; without, their own names.
set(LEEWAY_GENERATED ${PROJECT_BINARY_DIR}/generated)

function(leeway_schemas sources)
  cmake_parse_arguments(arg "" "" "STEMS" ${ARGN})
  set(annotations ${PROJECT_SOURCE_DIR}/messages/generator/annotations.capnp)
  set(all)
  foreach(schema stem_name IN ZIP_LISTS arg_UNPARSED_ARGUMENTS arg_STEMS)
    cmake_path(RELATIVE_PATH schema BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
    cmake_path(GET path PARENT_PATH folder)
    cmake_path(GET path STEM name)
    set(capnp ${LEEWAY_GENERATED}/${folder}/${name}.capnp)
    if(stem_name)
      set(name ${stem_name})
    endif()
    set(stem ${LEEWAY_GENERATED}/${folder}/${name})
    set(product ${capnp}.c++ ${stem}.cpp ${capnp}.h ${stem}.wire.hpp ${stem}.hpp)
    set(for_tests ${LEEWAY_GENERATED}/tests/${folder}/any_${name}.hpp ${LEEWAY_GENERATED}/tests/${folder}/fields_${name}.hpp)
    # An unchanged file keeps its time, and Ninja compares the times of by-products: a new generator, or an edit of one schema,
    # recompiles only what includes a file that has changed.
    set(fresh ${PROJECT_BINARY_DIR}/generating)
    string(REPLACE ${LEEWAY_GENERATED} ${fresh} fresh_product "${product}")
    string(REPLACE ${LEEWAY_GENERATED} ${fresh} fresh_for_tests "${for_tests}")
    add_custom_command(VERBATIM
      OUTPUT ${fresh}/${folder}/${name}.stamp
      BYPRODUCTS ${product} ${for_tests}
      COMMAND ${CAPNP_EXECUTABLE} compile --src-prefix=${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}
        -I${CAPNP_INCLUDE_DIRECTORY} -o${CAPNPC_CXX_EXECUTABLE}:${fresh}
        -o$<TARGET_FILE:leeway_generator>:${fresh} ${schema}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${LEEWAY_GENERATED}/${folder} ${LEEWAY_GENERATED}/tests/${folder}
      COMMAND ${CMAKE_COMMAND} -E copy_if_different ${fresh_product} ${LEEWAY_GENERATED}/${folder}
      COMMAND ${CMAKE_COMMAND} -E copy_if_different ${fresh_for_tests} ${LEEWAY_GENERATED}/tests/${folder}
      COMMAND ${CMAKE_COMMAND} -E touch ${fresh}/${folder}/${name}.stamp
      DEPENDS leeway_generator ${annotations} ${arg_UNPARSED_ARGUMENTS}
      COMMENT "Generating C++ from ${path}")
    list(APPEND all ${capnp}.c++ ${stem}.cpp ${fresh}/${folder}/${name}.stamp)
  endforeach()
  file(MAKE_DIRECTORY ${LEEWAY_GENERATED} ${PROJECT_BINARY_DIR}/generating)
  set(${sources} ${all} PARENT_SCOPE)
endfunction()
