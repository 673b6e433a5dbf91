# PROGRAM of exec, check and env and its arguments are completed as without rdzv, and the rest by
# cobra's completion.
_rdzv()
{
    local program=$(${~words[1]} __program "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    if [[ -z $program ]]; then
        _rdzv_own
        return
    fi
    shift $program words
    ((CURRENT -= program))
    if ((CURRENT > 1)); then
        _normal
    elif [[ -n $PREFIX ]]; then
        _alternative 'commands:command: _command_names -e' 'files:file:_files'
    else
        _files
    fi
}

