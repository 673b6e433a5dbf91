
# Above is cobra's completion, below what it does not do.

# PROGRAM of exec, check and env and its arguments are completed as without rdzv.
_rdzv() {
	local program current=${COMP_WORDS[COMP_CWORD]}
	program=$(eval "${COMP_WORDS[0]}" '__program "${COMP_WORDS[@]:1:COMP_CWORD}"' 2>/dev/null)
	if [[ ! $program ]]; then
		__start_rdzv "$@"
	elif ((program == COMP_CWORD)); then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen ${current:+-A command} -A file -- "$current" | sort -u)
	elif declare -F _comp_command_offset >/dev/null; then # bash-completion 2.12
		_comp_command_offset "$program"
	elif declare -F _command_offset >/dev/null; then
		_command_offset "$program"
	fi
}
complete -o default -F _rdzv rdzv

# cobra's completion takes these two from the package bash-completion. Readline splits --device=mask
# at "=".
__rdzv_init_completion() {
	local i
	COMPREPLY=() words=("${COMP_WORDS[0]}") cword=0
	for ((i = 1; i <= COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} != = && ${COMP_WORDS[i - 1]} != = ]]; then
			((++cword))
		fi
		words[cword]+=${COMP_WORDS[i]}
	done
	cur=${words[cword]}
}
declare -F _filedir >/dev/null || _filedir() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen "${1:--f}" -- "$cur")
}

# A launcher before rdzv. What is before rdzv is completed as without this function: by that of the
# launcher, which is called _srun for srun, if there is one.
_rdzv_launched() {
	local i name=${1##*/}
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]##*/} == rdzv ]]; then
			COMP_WORDS=("${COMP_WORDS[@]:i}")
			((COMP_CWORD -= i))
			type -P "${COMP_WORDS[0]}" >/dev/null || COMP_WORDS[0]=rdzv # it is only in a container
			COMP_LINE=${COMP_WORDS[*]} COMP_POINT=${#COMP_LINE}
			_rdzv "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
			return
		fi
	done
	if ! declare -F "_$name" >/dev/null && [[ -r /usr/share/bash-completion/completions/$name ]]; then
		# shellcheck disable=SC1090 # it belongs to a package that may be missing
		source "/usr/share/bash-completion/completions/$name"
		_rdzv_launchers "$name" # it has completed by its function alone
	fi
	if declare -F "_$name" >/dev/null; then
		"_$name" "$@"
	fi
}

# Completes after these launchers, unless the user has another function for one of them.
_rdzv_launchers() {
	local name
	for name; do
		case $(complete -p "$name" 2>/dev/null) in
		'' | *" -F _$name "* | *' -F _minimal '*)
			complete -o bashdefault -o default -F _rdzv_launched "$name"
			;;
		esac
	done
}
_rdzv_launchers mpirun mpirun.openmpi mpirun.mpich mpiexec mpiexec.hydra prterun srun
