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

	"rdzv/rdzv/masterport"
)

// runPeer is a worker that uses its environment as torch does: rank 0 listens on MASTER_PORT, all
// connect to it at MASTER_ADDR, and then each connects to each other at the address of
// GLOO_SOCKET_IFNAME.
//
//	peer DIR    leaves its record in DIR, with WORKER_HOST; that of rank 0 has NEXT_PORTS, the result
//	            of binding the ports above MASTER_PORT
//
// It exits with 0 if it has reached all others of its job, and no process of another job.
func runPeer(args []string) int {
	if err := meetPeers(args[0]); err != nil {
		return reportError(err)
	}
	return 0
}

// peer is the command line of a peer.
func peer(dir string) []string { return []string{self, "peer", dir} }

func meetPeers(dir string) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
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
			return errors.Join(err, leaveRecord(dir))
		}
		serving.Go(func() { exchangeAddresses(master, size) })
	}
	if err := leaveRecord(dir); err != nil {
		return err
	}
	return connectToAll(rank, size)
}

// listenAsMaster listens as torch's store does, and tries the ports above it, which some programs
// use.
func listenAsMaster() (net.Listener, error) {
	port := os.Getenv("MASTER_PORT")
	master, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return nil, err
	}
	os.Setenv("NEXT_PORTS", "free")
	number, _ := strconv.Atoi(port)
	for next := range masterport.SparePorts {
		spare, err := net.Listen("tcp", fmt.Sprint(":", number+1+next))
		if err != nil {
			os.Setenv("NEXT_PORTS", err.Error())
			break
		}
		defer spare.Close()
	}
	return master, nil
}

// peerAddress is what a peer sends to rank 0, and rank 0 sends of all to all.
type peerAddress struct {
	Rank      int
	Run, Addr string
}

// exchangeAddresses receives everyone's address and sends all of them to all. When all have
// reported that they are done, it closes the connections.
func exchangeAddresses(master net.Listener, size int) {
	defer master.Close()
	var conns []net.Conn
	var all []peerAddress
	for len(all) < size {
		conn, err := master.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(waitLimit))
		var a peerAddress
		if json.NewDecoder(conn).Decode(&a) != nil {
			continue
		}
		conns, all = append(conns, conn), append(all, a)
	}
	for _, conn := range conns {
		_ = json.NewEncoder(conn).Encode(all) // a peer that has ended has reported why
	}
	for _, conn := range conns {
		_, _ = conn.Read(make([]byte, 1))
	}
}

func connectToAll(rank, size int) error {
	own, err := listenOnInterface(os.Getenv("GLOO_SOCKET_IFNAME"))
	if err != nil {
		return err
	}
	defer own.Close()
	go serveRank(own, rank)
	master, err := dialMaster()
	if err != nil {
		return err
	}
	defer master.Close()
	var all []peerAddress
	self := peerAddress{rank, os.Getenv("RDZV_RUN_ID"), own.Addr().String()}
	err = errors.Join(
		master.SetDeadline(time.Now().Add(waitLimit)),
		json.NewEncoder(master).Encode(self),
		json.NewDecoder(master).Decode(&all),
	)
	if err != nil {
		return err
	}
	if err := checkPeers(all, size); err != nil {
		return err
	}
	for _, a := range all {
		if err := connect(a); err != nil {
			return err
		}
	}
	if _, err := master.Write([]byte("\n")); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, master)
	return nil
}

func checkPeers(all []peerAddress, size int) error {
	seen := map[int]bool{}
	for _, a := range all {
		if a.Run != os.Getenv("RDZV_RUN_ID") {
			return fmt.Errorf("rank %d of another job, %q, has connected", a.Rank, a.Run)
		}
		seen[a.Rank] = true
	}
	if len(seen) != size {
		return fmt.Errorf("%d of %d ranks have connected", len(seen), size)
	}
	return nil
}

// dialMaster tries until rank 0 listens; an address that does not lead to it is an error.
func dialMaster() (conn net.Conn, err error) {
	address := net.JoinHostPort(os.Getenv("MASTER_ADDR"), os.Getenv("MASTER_PORT"))
	eventually(waitLimit, func() bool {
		conn, err = net.DialTimeout("tcp", address, 5*time.Second)
		return err == nil || !errors.Is(err, syscall.ECONNREFUSED)
	})
	return conn, err
}

// serveRank sends this rank on every connection.
func serveRank(own net.Listener, rank int) {
	for {
		conn, err := own.Accept()
		if err != nil {
			return
		}
		fmt.Fprintln(conn, rank)
		conn.Close()
	}
}

// connect checks that the address of a rank leads to it.
func connect(a peerAddress) error {
	conn, err := net.DialTimeout("tcp", a.Addr, 5*time.Second)
	if err != nil {
		return fmt.Errorf("cannot reach rank %d: %w", a.Rank, err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	var rank int
	if _, err := fmt.Fscan(conn, &rank); err != nil || rank != a.Rank {
		return fmt.Errorf("at the address of rank %d, rank %d answers (%v)", a.Rank, rank, err)
	}
	return nil
}

// listenOnInterface listens on the first address of an interface that is not link-local, or on
// loopback if no interface is given.
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
		p, err := netip.ParsePrefix(a.String())
		if err == nil && !p.Addr().IsLinkLocalUnicast() {
			return net.Listen("tcp", netip.AddrPortFrom(p.Addr(), 0).String())
		}
	}
	return nil, fmt.Errorf("interface %q has no address", name)
}
