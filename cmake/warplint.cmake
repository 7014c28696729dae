# warplint in a CMake project: a target that lints what the compiler says about the kernels of other targets.
#
#   include(cmake/warplint.cmake)
#   warplint_lint(TARGETS simulate render [NAME lint] [ARGS --fail-on deny])
#
# then `cmake --build build --target lint`. It builds the targets, and lints their CUDA sources and what nvcc printed when it
# compiled each of them, the last time that it did: what is up to date is not compiled again. warplint is the one on PATH, or the
# one that WARPLINT_EXECUTABLE names. Without one there is no target, and the project builds as ever.
#
# For that the targets are compiled with -Xptxas=-v and through a launcher, which keeps what nvcc prints beside the object;
# a launcher that is set already, such as ccache, stays in between. Launchers are for Makefile and Ninja generators.
#
# Needs CMake 3.19. This file is the whole of it: copy it into the project.

# As a script, this file is the launcher: cmake -P warplint.cmake -- nvcc ARG...
if(CMAKE_SCRIPT_MODE_FILE AND CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  set(command "")
  set(object "")
  set(before "")
  set(is_command FALSE)
  math(EXPR last "${CMAKE_ARGC} - 1")
  foreach(at RANGE ${last})
    set(argument "${CMAKE_ARGV${at}}")
    if(is_command)
      if(before STREQUAL "-o")
        set(object "${argument}")
      endif()
      set(before "${argument}")
      string(REPLACE ";" "\\;" argument "${argument}")
      list(APPEND command "${argument}")
    elseif(argument STREQUAL "--")
      set(is_command TRUE)
    endif()
  endforeach()
  execute_process(
    COMMAND ${command}
    RESULT_VARIABLE status
    OUTPUT_VARIABLE said
    ERROR_VARIABLE said)
  # The build stays as quiet as it is without -Xptxas=-v.
  string(REGEX REPLACE "(^|\n)(ptxas info  |    [0-9]+ bytes stack frame)[^\n]*" "" others "\n${said}")
  string(STRIP "${others}" others)
  if(others)
    message("${others}")
  endif()
  if(status EQUAL 0 AND object)
    file(WRITE "${object}.ptxas.log" "${said}")
  elseif(NOT status EQUAL 0 AND CMAKE_VERSION VERSION_GREATER_EQUAL 3.29 AND status MATCHES "^[0-9]+$")
    cmake_language(EXIT ${status})
  elseif(NOT status EQUAL 0)
    message(FATAL_ERROR "nvcc: ${status}")
  endif()
  return()
endif()

set(_WARPLINT_LAUNCHER "${CMAKE_CURRENT_LIST_FILE}")

function(warplint_lint)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "TARGETS;ARGS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_TARGETS)
    message(FATAL_ERROR "warplint_lint(TARGETS target... [NAME name] [ARGS option...]): ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_NAME)
    set(arg_NAME lint)
  endif()
  if(TARGET ${arg_NAME})
    message(FATAL_ERROR "warplint_lint: there is a target ${arg_NAME} already: give this one another NAME")
  endif()
  foreach(target IN LISTS arg_TARGETS)
    if(NOT TARGET ${target})
      message(FATAL_ERROR "warplint_lint: there is no target ${target}")
    endif()
  endforeach()
  find_program(WARPLINT_EXECUTABLE warplint DOC "The warplint that lints the build")
  if(NOT WARPLINT_EXECUTABLE)
    message(WARNING "warplint is not on PATH: there is no target ${arg_NAME}")
    return()
  endif()
  set(logs "")
  set(sources "")
  foreach(target IN LISTS arg_TARGETS)
    # A target that is in several calls has one launcher.
    get_target_property(is_kept ${target} _WARPLINT_KEEPS)
    if(NOT is_kept)
      set(launcher "${CMAKE_COMMAND}" -P "${_WARPLINT_LAUNCHER}" --)
      get_target_property(inner ${target} CUDA_COMPILER_LAUNCHER)
      if(inner)
        list(APPEND launcher ${inner})
      endif()
      set_target_properties(${target} PROPERTIES CUDA_COMPILER_LAUNCHER "${launcher}" _WARPLINT_KEEPS TRUE)
      target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v>")
    endif()
    set(objects "$<FILTER:$<TARGET_OBJECTS:${target}>,INCLUDE,[.]cu[.]o>")
    # The sources tell how kernels are launched. Those that a generator expression names are left out.
    get_target_property(folder ${target} SOURCE_DIR)
    get_target_property(of_target ${target} SOURCES)
    list(FILTER of_target INCLUDE REGEX "^[^$]*[.](cu|cuh)$")
    foreach(source IN LISTS of_target)
      get_filename_component(source "${source}" ABSOLUTE BASE_DIR "${folder}")
      get_source_file_property(is_generated "${source}" TARGET_DIRECTORY ${target} GENERATED)
      if(NOT is_generated)
        file(RELATIVE_PATH source "${CMAKE_CURRENT_SOURCE_DIR}" "${source}")
        list(APPEND sources "${source}")
      endif()
    endforeach()
    list(APPEND logs "$<$<BOOL:${objects}>:$<JOIN:${objects},.ptxas.log;>.ptxas.log>")
  endforeach()
  list(REMOVE_DUPLICATES sources)
  string(JOIN ", " names ${arg_TARGETS})
  add_custom_target(${arg_NAME}
    COMMAND "${WARPLINT_EXECUTABLE}" ${arg_ARGS} ${sources} "${logs}"
    DEPENDS ${arg_TARGETS}
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    COMMENT "Linting the kernels of ${names}"
    USES_TERMINAL COMMAND_EXPAND_LISTS VERBATIM)
endfunction()
