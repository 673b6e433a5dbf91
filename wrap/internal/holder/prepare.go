package holder

import (
	"os"
	"syscall"
	"unsafe"
)

// preparation makes the memory of a holder.
type preparation struct {
	config *Config
	shared *Shared
	arena  arena
	files  descriptors
	holder *holder
}

func (p *preparation) release() {
	p.files.close()
	p.arena.release()
}

// make makes the holder. The addresses of what only the start of workers needs come last.
func (p *preparation) make(socket int) (err error) {
	if p.arena, err = newArena(p.size()); err != nil {
		return err
	}
	p.holder = (*holder)(p.arena.take(unsafe.Sizeof(holder{})))
	p.connect()
	p.addWorkers()
	p.keepFiles(socket)
	p.watch()
	p.holder.own.read(&p.arena)
	p.holder.starter.text = p.arena.rest()
	for i := range p.config.Workers {
		p.holder.workers.list[i].program.describe(&p.arena, &p.config.Workers[i])
	}
	return p.files.err
}

// size is how many bytes the memory takes at most.
func (p *preparation) size() uintptr {
	const lists = 64 << 10 // room for what is read from /proc
	size := unsafe.Sizeof(holder{}) + 3*uintptr(os.Getpagesize()) + lists
	for _, w := range p.config.Workers {
		size += w.size() + 128
	}
	return size
}

// connect sets what the parts of the holder have of one another, and of Shared.
func (p *preparation) connect() {
	h := p.holder
	h.workers.channel = &h.channel
	h.starter.buffer = &h.buffer
	h.watch.shared, h.watch.workers, h.watch.buffer = p.shared, &h.workers, &h.buffer
	h.lease.shared, h.lease.workers, h.lease.until = p.shared, &h.workers, &p.shared.LeaseUntil
	if p.config.Until != nil {
		h.lease.until = p.config.Until
	}
	h.killer.workers, h.killer.channel = &h.workers, &h.channel
	children := &h.workers.children
	children.list, children.buffer = p.arena.text("/proc/thread-self/children"), &h.buffer
	copy(children.path[:], statPath)
}

func (p *preparation) addWorkers() {
	h, streams, group := p.holder, copies{}, syscall.Getpgrp()
	// Otherwise this pid namespace has no number for the group, and nothing can be put back.
	h.move = group != 0
	h.starter.files, h.starter.left = workerFiles(), len(p.config.Workers)
	h.workers.list = takeList[slot](&p.arena, len(p.config.Workers))
	for i := range p.config.Workers {
		w, s := &p.config.Workers[i], &h.workers.list[i]
		s.index, s.program.node = i, uintptr(w.Node) // AnyNode is none
		for stream, fd := range w.Files {
			s.program.files[stream] = p.files.add(fd, streams)
		}
		switch {
		case p.config.SameGroup && group == 0:
			s.program.group = none
		case p.config.SameGroup:
			s.program.group = uintptr(group)
		}
	}
}

// keepFiles lists the descriptors that the holder keeps. Those of the streams come first, and are
// not shared with the others, because they are closed before.
func (p *preparation) keepFiles(socket int) {
	h, streams := p.holder, len(p.files.list)
	for i := range p.config.Workers {
		w, own := &p.config.Workers[i], copies{}
		o := &h.workers.list[i].output
		o.pipe, o.log = none, none
		if w.Log != Null {
			o.pipe, o.log, o.chunk = p.files.add(w.Pipe, own), p.files.add(w.Log, own), w.Chunk
		}
	}
	h.inherited.null = p.files.addNull()
	h.starter.null = h.inherited.null
	h.channel.socket, h.owner = p.files.add(socket, copies{}), none
	if p.config.Owner != 0 {
		h.owner = p.files.add(p.config.Owner, copies{})
	}
	h.held.socket = none
	if held := p.config.Held; held != nil {
		h.held.socket = p.files.add(held.Socket, copies{})
		h.held.others, h.held.own = p.files.add(held.Others, copies{}), p.files.add(held.Own, copies{})
	}
	h.inherited.kept, h.inherited.highest = copyTo(&p.arena, p.files.list), highestDescriptor()
	h.starter.streams = h.inherited.kept[:streams]
}

// watch notes which processes may not be stopped for too long.
func (p *preparation) watch() {
	w := &p.holder.watch
	w.agent = watched{pid: uintptr(os.Getpid()), stat: p.arena.text(statFile(os.Getpid()))}
	if p.config.Owner != 0 {
		owner := peer(p.config.Owner)
		w.owner = watched{pid: uintptr(owner), stat: p.arena.text(statFile(owner))}
	}
}

// size is how many bytes a worker takes at most.
func (w *WorkerSpec) size() uintptr {
	size := unsafe.Sizeof(slot{}) + uintptr(len(w.Path)+len(w.Dir)+64)
	for _, list := range [][]string{w.Args, w.Env} {
		for _, s := range list {
			size += uintptr(len(s)) + 32
		}
	}
	return size + 8*8 + maxCPUs/8 + 6*8
}

const maxCPUs = 8192 // NR_CPUS on x86 and arm

// describe sets what a worker executes.
func (p *program) describe(a *arena, w *WorkerSpec) {
	p.path, p.argv, p.env = a.text(w.Path), a.texts(w.Args), a.texts(w.Env)
	if w.Dir != "" {
		p.dir = a.text(w.Dir)
	}
	if len(w.CPUs) == 0 {
		return
	}
	var mask [maxCPUs / 64]uint64
	for _, cpu := range w.CPUs {
		if cpu >= 0 && cpu < maxCPUs {
			mask[cpu/64] |= 1 << (cpu % 64)
		}
	}
	to := copyTo(a, mask[:])
	p.cpus = span{uintptr(unsafe.Pointer(&to[0])), unsafe.Sizeof(mask)}
}
