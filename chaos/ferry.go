package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// ferry has the zygote fork a rank with this process's environment and streams, passes signals on to it, and ends as it
// does. When this process is killed, the zygote kills the rank.
func ferry(zygote string, environ []string) int {
	asked := make(chan os.Signal, 8)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGABRT)
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: zygote, Net: "unix"})
	if err == nil {
		err = request(conn, environ)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: cannot get a rank: %v\n", err)
		return 97
	}
	go func() {
		for s := range asked {
			fmt.Fprintf(conn, "signal %d", int(s.(syscall.Signal)))
		}
	}()
	var kind string
	var n int
	answer := make([]byte, 64)
	length, _ := conn.Read(answer)
	if _, err := fmt.Sscan(string(answer[:length]), &kind, &n); err != nil {
		fmt.Fprintf(os.Stderr, "chaos: lost the rank: %v\n", err)
		return 98
	}
	if kind == "exit" {
		return n
	}
	// Go catches SIGSEGV and its like in every program of its own, so this becomes one that does not.
	die := fmt.Sprintf("ulimit -c 0; kill -%d $$", n)
	err = syscall.Exec("/bin/sh", []string{"sh", "-c", die}, environ)
	fmt.Fprintf(os.Stderr, "chaos: cannot end as the rank: %v\n", err)
	return 99
}

// request sends the environment, its length before it, with the three streams.
func request(conn *net.UnixConn, environ []string) error {
	env := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	text, err := json.Marshal(env)
	if err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	if _, _, err := conn.WriteMsgUnix(head, syscall.UnixRights(0, 1, 2), nil); err != nil {
		return err
	}
	_, err = conn.Write(text)
	return err
}
