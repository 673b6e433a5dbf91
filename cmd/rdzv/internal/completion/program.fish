
# Above is cobra's completion, below what it does not do.

# PROGRAM of exec, check and env and its arguments are completed as without rdzv.
function __rdzv_program
    set -l words (commandline -opc) "$(commandline -ct)"
    set -l program (eval $words[1] __program (string escape -- $words[2..]) 2>/dev/null)
    test -n "$program"; or return
    if test (math $program + 1) = (count $words)
        __fish_complete_path $words[-1]
        test -n "$words[-1]"; or return
    end
    set -l line (string escape -- $words[(math $program + 1)..-2]) $words[-1]
    complete -C "$line"
end
complete -c rdzv -n 'test -n "$(__rdzv_program)"' -f -a '(__rdzv_program)'

# A directory is the argument of install, or the value of a flag.
function __rdzv_directory
    __rdzv_perform_completion_once
    test "$__rdzv_perform_completion_once_result[-1]" = :16
end
complete -c rdzv -n __rdzv_directory -f -a '(__fish_complete_directories)'
