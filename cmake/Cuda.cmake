# Sets LEEWAY_WITH_CUDA: whether to build the module for GPUs, the only code that needs CUDA.
#
# AUTO builds it if nvcc and cuBLAS are found, ON requires them, OFF does not search. Builds with sanitizers or fuzzers only
# search with ON, because they check the CPU code.
set(LEEWAY_CUDA AUTO CACHE STRING "Build the module for GPUs: AUTO, ON or OFF")
set_property(CACHE LEEWAY_CUDA PROPERTY STRINGS AUTO ON OFF)
set(LEEWAY_WITH_CUDA OFF)

# leeway_without_cuda(WHY): ends the search; an error if the module is required.
function(leeway_without_cuda why)
  if(LEEWAY_CUDA STREQUAL "AUTO")
    message(STATUS "GPUs: no module, CPU only (${why})")
  else()
    message(FATAL_ERROR "LEEWAY_CUDA is ${LEEWAY_CUDA}, but ${why}; install the CUDA toolkit, name its compiler with "
      "-DCMAKE_CUDA_COMPILER=/path/to/nvcc, or give -DLEEWAY_CUDA=OFF")
  endif()
endfunction()

function(leeway_find_cuda)
  include(CheckLanguage)
  find_program(LEEWAY_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME ENV CUDA_PATH PATH_SUFFIXES bin
    PATHS /usr/local/cuda/bin /opt/cuda/bin)
  mark_as_advanced(LEEWAY_NVCC)
  if(NOT LEEWAY_NVCC AND NOT CMAKE_CUDA_COMPILER)
    leeway_without_cuda("nvcc is not found")
    return()
  endif()
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    set(ENV{CUDACXX} ${LEEWAY_NVCC})
  endif()
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    leeway_without_cuda("nvcc does not work with this C++ compiler")
    return()
  endif()
  get_filename_component(CUDAToolkit_ROOT ${CMAKE_CUDA_COMPILER} DIRECTORY)
  get_filename_component(CUDAToolkit_ROOT ${CUDAToolkit_ROOT} DIRECTORY)
  find_package(CUDAToolkit 12 QUIET)
  if(NOT TARGET CUDA::cublas OR NOT TARGET CUDA::cudart_static)
    leeway_without_cuda("the toolkit of ${CMAKE_CUDA_COMPILER} is older than 12 or lacks cuBLAS")
    return()
  endif()
  set(LEEWAY_WITH_CUDA ON PARENT_SCOPE)
endfunction()

if(LEEWAY_CUDA STREQUAL "AUTO" AND (LEEWAY_SANITIZE OR LEEWAY_FUZZ))
  leeway_without_cuda("sanitizers and fuzzers watch the processor's side")
elseif(LEEWAY_CUDA)
  leeway_find_cuda()
endif()

if(LEEWAY_WITH_CUDA)
  # Machine code for Hopper, on which Leeway is measured; other GPUs use PTX of generation 80, which the driver compiles once.
  # Every further architecture lengthens the build.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90-real 80-virtual)
  endif()
  if(LEEWAY_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${LEEWAY_CCACHE})
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  find_package(CUDAToolkit 12 QUIET REQUIRED)
  message(STATUS "GPUs: a module for ${CMAKE_CUDA_ARCHITECTURES}, with CUDA ${CUDAToolkit_VERSION}")
endif()
