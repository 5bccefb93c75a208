# leeway_group_sources(TARGET): compiles the target's sources in groups (LEEWAY_UNITY). Names in the anonymous namespaces of
# one folder must therefore differ.
function(leeway_group_sources target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${LEEWAY_UNITY} UNITY_BUILD_BATCH_SIZE 24)
  if(LEEWAY_UNITY)
    # GCC takes a source file that it meets as an #include for a header.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# The libraries that read values from raw bytes. The checks double the compile time of messages and datasets; their fuzz programs
# have them.
set(LEEWAY_RAW_BYTES core tensor kernels checkpoint policies transport)

# leeway_library(NAME SOURCES file... [USES library...] [PRIVATE library...]): one folder's static library, leeway_NAME.
function(leeway_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;USES;PRIVATE" ${ARGN})
  add_library(leeway_${name} STATIC ${arg_SOURCES})
  add_library(Leeway::${name} ALIAS leeway_${name})
  set_target_properties(leeway_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(leeway_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/leeway>)
  target_compile_features(leeway_${name} PUBLIC cxx_std_20)
  target_link_libraries(leeway_${name} PUBLIC ${arg_USES} PRIVATE ${arg_PRIVATE})
  leeway_group_sources(leeway_${name})
  if(LEEWAY_SANITIZE MATCHES undefined AND name IN_LIST LEEWAY_RAW_BYTES)
    target_compile_options(leeway_${name} PRIVATE -fsanitize=alignment)
  endif()
  set_property(GLOBAL APPEND PROPERTY LEEWAY_LIBRARIES leeway_${name})
endfunction()

# Options for code whose optimisation takes longer than running it: tests, and everything that runs once per program. GCC
# compiles it 20% faster with -Og than with -O1, and instrumented tests in half the time without optimisation.
set(LEEWAY_QUICK_COMPILE $<$<NOT:$<CONFIG:Debug>>:$<IF:$<CXX_COMPILER_ID:GNU>,-Og,-O1>>)
set(LEEWAY_TEST_COMPILE ${LEEWAY_QUICK_COMPILE})
if(LEEWAY_SANITIZE)
  set(LEEWAY_TEST_COMPILE -O0)
endif()

# Stores find gradients that are written after their push.
set(LEEWAY_CHECKED_BUFFERS $<$<CONFIG:Debug>:LEEWAY_CHECK_BUFFERS>)
if(LEEWAY_SANITIZE)
  set(LEEWAY_CHECKED_BUFFERS LEEWAY_CHECK_BUFFERS)
endif()

# For ccache: names the precompiled header in the preprocessed source.
set(LEEWAY_CACHED_PCH $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)

# leeway_test(NAME [GROUPED] SOURCES file... [USES library...]): one Catch2 program of tests, known to ctest as NAME. GROUPED: as
# leeway_group_sources.
function(leeway_test name)
  cmake_parse_arguments(arg "GROUPED" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests
    POSITION_INDEPENDENT_CODE OFF)
  target_link_libraries(${name} PRIVATE leeway_test_main ${arg_USES})
  target_compile_options(${name} PRIVATE ${LEEWAY_TEST_COMPILE} ${LEEWAY_CACHED_PCH})
  target_precompile_headers(${name} REUSE_FROM leeway_test_main)
  if(arg_GROUPED)
    leeway_group_sources(${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  if(LEEWAY_SANITIZE MATCHES thread)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT
      "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp ignore_noninstrumented_modules=1")
  endif()
endfunction()
