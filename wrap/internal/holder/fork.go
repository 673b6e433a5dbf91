package holder

import "syscall"

// fork forks this process without exec. All signals are blocked.
func (m *memory) fork() (pid int, err error) {
	n, errno := m.clone()
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

//go:nosplit
//go:noinline
//go:norace
//go:nocheckptr
func (m *memory) clone() (pid uintptr, errno syscall.Errno) {
	m.advise(wipeOnFork)
	pid, errno = sys(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0)
	if errno == 0 && pid == 0 {
		m.begin()
		m.openSignals()
		m.advise(syscall.MADV_DONTNEED)
		m.overwriteArguments()
		m.run()
	}
	m.advise(keepOnFork)
	return pid, errno
}
