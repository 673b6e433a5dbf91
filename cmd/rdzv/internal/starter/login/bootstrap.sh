# This runs on each host, in the sh that ssh has started: it finds this build of rdzv or receives it,
# and becomes it. Each line that it prints begins with $mark; dialogue.go has the other side. Set
# before: mark, build, bytes (the size of the binary), sum (its SHA-256), room (KiB that it needs).
# shellcheck shell=sh disable=SC2034,SC2154 # the latter are these; x is what is not used

say() { printf '%s %s\n' "$mark" "$*"; }

# ours DIR: DIR is a directory of this user, and nobody else can write to it.
ours() {
	why="$1 is not a directory of this user"
	[ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] || return 1
	why="others can write to $1"
	case $(ls -ld "$1") in d????-??-*) ;; *) return 1 ;; esac
}

# same FILE: FILE is this build.
same() {
	case $1 in /*) [ -x "$1" ] && [ "$(wc -c <"$1")" -eq "$bytes" ] && hashed "$1" ;; *) false ;; esac
}
hashed() { [ "$(sha256sum <"$1")" = "$sum  -" ]; }

# look DIR...: this build is $at: in PATH, or a copy in one of the directories.
look() {
	at=$(command -v rdzv) && same "$at" && return
	for dir in "$@"; do
		at=$dir/$build/rdzv
		[ -f "$at" ] && [ -x "$at" ] && [ ! -L "$at" ] && [ -O "$at" ] &&
			ours "$dir" && ours "$dir/$build" && return
	done
	return 1
}

# prepare DIR: DIR/$build exists, has room for the binary, and what is there can be executed.
prepare() {
	case $1 in */.cache/rdzv)
		[ -d "${1%/*}" ] || why=$(mkdir -m 700 "${1%/*}" 2>&1) || return 1
		;;
	esac
	for made in "$1" "$1/$build"; do
		why=$(mkdir -m 700 "$made" 2>&1) || [ -d "$made" ] || return 1
		ours "$made" || return 1
	done
	free=$(df -Pk "$1" 2>/dev/null | { read -r x; read -r x x x free x && echo "$free"; })
	why="$1 has room for $free KiB, and rdzv needs $room"
	case $free in '' | *[!0-9]*) ;; *) [ "$free" -ge "$room" ] || return 1 ;; esac
	new=$1/$build/.new-$mark
	why=$({ echo '#!/bin/sh' >"$new" && chmod 700 "$new" && "$new"; } 2>&1) && rm -f "$new"
}

# receive SIZE: $new is the binary, which follows on stdin in SIZE compressed bytes. All of them are
# read, whatever happens.
receive() {
	why=$(head -c "$1" | { gzip -dc 2>&1 >"$new"; cat >/dev/null; })
	[ -z "$why" ] || return 1
	why="$new is damaged" && hashed "$new" &&
		why=$({ chmod 700 "$new" && mv -f "$new" "${new%/*}/rdzv"; } 2>&1)
}

# install DIR...: $at is a copy in one of the directories. Otherwise $all says why not. Copies that
# nobody has used for 30 days go.
install() {
	all=
	for dir in "$@"; do
		if prepare "$dir"; then
			say send
			if read -r size && receive "$size"; then
				# a directory without a copy is not of this script: stores are in /tmp/rdzv-UID too
				find "$dir"/* -prune -type d ! -name "$build" -mtime +30 \
					-exec test -f {}/rdzv \; -exec rm -rf {} \;
				at=$dir/$build/rdzv
				return
			fi
		fi
		all="$all${all:+; }$why"
		[ -z "${new-}" ] || rm -f "$new"
		rmdir "$dir/$build" "$dir" 2>/dev/null
	done
	return 1
}

trap : PIPE # what was begun is removed, although nobody listens any more
machine='' boot=''
{ read -r machine </etc/machine-id; read -r boot </proc/sys/kernel/random/boot_id; } 2>/dev/null
say here "$(uname -s)" "$(uname -m)" "$machine/$boot/$(readlink /proc/self/ns/net)/$(uname -n)"

set -- ${HOME:+"$HOME/.cache/rdzv"} ${XDG_RUNTIME_DIR:+"$XDG_RUNTIME_DIR/rdzv"} "/tmp/rdzv-$(id -u)"
if ! look "$@" 2>/dev/null; then
	say missing
	read -r x || exit 1
	look "$@" 2>/dev/null || install "$@" || {
		say failed "$(printf %s "$all" | tr '\n' ' ')"
		exit 1
	}
fi
say ready "$at"
read -r x || exit 1
case $at in */"$build"/rdzv) touch "${at%/*}" ;; esac
say runs
