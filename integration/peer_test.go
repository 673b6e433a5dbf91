package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// A peer is a worker that uses what it was told as torch does: rank 0 listens on MASTER_PORT, all come to it at
// MASTER_ADDR, and then each connects to each other by the address of GLOO_SOCKET_IFNAME.
//
//	peer DIR    notes itself in DIR, with WORKER_HOST and, of rank 0, NEXT_PORT: what binding MASTER_PORT+1 came to
//
// It ends with 0 when it has spoken with all others of its own job, and with none of another.
func init() {
	if len(os.Args) != 3 || os.Args[1] != "peer" {
		return
	}
	if err := peer(os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "peer of rank %s: %v\n", os.Getenv("RANK"), err)
		os.Exit(1)
	}
	os.Exit(0)
}

// peerLine is the command line of a peer.
func peerLine(dir string) []string { return []string{self, "peer", dir} }

// card is what a peer says of itself to rank 0, and rank 0 of all to all.
type card struct {
	Rank      int
	Run, Addr string
}

func peer(dir string) error {
	host, _ := os.Hostname()
	os.Setenv("WORKER_HOST", host)
	rank, err1 := strconv.Atoi(os.Getenv("RANK"))
	size, err2 := strconv.Atoi(os.Getenv("WORLD_SIZE"))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	if rank == 0 {
		master, err := listenAsMaster()
		if err != nil {
			return errors.Join(err, note(dir))
		}
		serving.Go(func() { gather(master, size) })
	}
	if err := note(dir); err != nil {
		return err
	}
	return meetPeers(rank, size)
}

// listenAsMaster listens as torch's store does, and tries the port behind it, as some programs do.
func listenAsMaster() (net.Listener, error) {
	port := os.Getenv("MASTER_PORT")
	master, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return nil, err
	}
	number, _ := strconv.Atoi(port)
	next, err := net.Listen("tcp", fmt.Sprint(":", number+1))
	if err != nil {
		os.Setenv("NEXT_PORT", err.Error())
		return master, nil
	}
	os.Setenv("NEXT_PORT", "free")
	return master, next.Close()
}

// gather takes everybody's card, then gives all of them to all; when all have said that they are done, it lets all go.
func gather(master net.Listener, size int) {
	defer master.Close()
	var conns []net.Conn
	var cards []card
	for len(cards) < size {
		conn, err := master.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(waitLimit))
		var c card
		if json.NewDecoder(conn).Decode(&c) != nil {
			continue
		}
		conns, cards = append(conns, conn), append(cards, c)
	}
	for _, conn := range conns {
		_ = json.NewEncoder(conn).Encode(cards) // whoever is gone has said why
	}
	for _, conn := range conns {
		_, _ = conn.Read(make([]byte, 1))
	}
}

func meetPeers(rank, size int) error {
	own, err := listenOnInterface(os.Getenv("GLOO_SOCKET_IFNAME"))
	if err != nil {
		return err
	}
	defer own.Close()
	go greet(own, rank)
	master, err := dialMaster()
	if err != nil {
		return err
	}
	defer master.Close()
	var cards []card
	err = errors.Join(
		master.SetDeadline(time.Now().Add(waitLimit)),
		json.NewEncoder(master).Encode(card{rank, os.Getenv("RDZV_RUN_ID"), own.Addr().String()}),
		json.NewDecoder(master).Decode(&cards),
	)
	if err != nil {
		return err
	}
	if err := checkCards(cards, size); err != nil {
		return err
	}
	for _, c := range cards {
		if err := visit(c); err != nil {
			return err
		}
	}
	if _, err := master.Write([]byte("\n")); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, master)
	return nil
}

func checkCards(cards []card, size int) error {
	seen := map[int]bool{}
	for _, c := range cards {
		if c.Run != os.Getenv("RDZV_RUN_ID") {
			return fmt.Errorf("rank %d of run %q is here, of another job", c.Rank, c.Run)
		}
		seen[c.Rank] = true
	}
	if len(seen) != size {
		return fmt.Errorf("%d of %d ranks are here", len(seen), size)
	}
	return nil
}

// dialMaster tries until rank 0 listens; an address that does not lead there is an error.
func dialMaster() (conn net.Conn, err error) {
	address := net.JoinHostPort(os.Getenv("MASTER_ADDR"), os.Getenv("MASTER_PORT"))
	eventually(waitLimit, func() bool {
		conn, err = net.DialTimeout("tcp", address, 5*time.Second)
		return err == nil || !errors.Is(err, syscall.ECONNREFUSED)
	})
	return conn, err
}

func greet(own net.Listener, rank int) {
	for {
		conn, err := own.Accept()
		if err != nil {
			return
		}
		fmt.Fprintln(conn, rank)
		conn.Close()
	}
}

func visit(c card) error {
	conn, err := net.DialTimeout("tcp", c.Addr, 5*time.Second)
	if err != nil {
		return fmt.Errorf("cannot reach rank %d: %w", c.Rank, err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	var rank int
	if _, err := fmt.Fscan(conn, &rank); err != nil || rank != c.Rank {
		return fmt.Errorf("at rank %d's address rank %d answers (%v)", c.Rank, rank, err)
	}
	return nil
}

// listenOnInterface listens on the first address of an interface that leads anywhere; on loopback where none is told.
func listenOnInterface(name string) (net.Listener, error) {
	if name == "" {
		return net.Listen("tcp", "127.0.0.1:0")
	}
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("interface %q: %w", name, err)
	}
	addrs, err := i.Addrs()
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLinkLocalUnicast() {
			return net.Listen("tcp", netip.AddrPortFrom(p.Addr(), 0).String())
		}
	}
	return nil, fmt.Errorf("interface %q has no address", name)
}
