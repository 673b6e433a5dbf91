package integration

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// runGarbage sends garbage, so many times per second, until SIGINT:
//
//	garbage RATE packets                    multicast packets
//	garbage RATE connections ADDR LOW HIGH  to a range of ports
//	garbage RATE scan ADDR LOW HIGH         the same, and closes each connection at once
func runGarbage(args []string) int {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT)
	rate, err := strconv.Atoi(args[0])
	if err != nil {
		return reportError(err)
	}
	send, err := garbageSender(args[1], args[2:])
	if err != nil {
		return reportError(err)
	}
	fmt.Println("attacking")
	const tick = time.Millisecond
	next, sent := time.NewTicker(tick), 0
	for start := time.Now(); ; {
		for ; sent < int(time.Since(start)/tick)*rate/1000; sent++ {
			send(sent)
		}
		select {
		case <-next.C:
		case <-stop:
			perSecond := float64(sent) / time.Since(start).Seconds()
			fmt.Printf("%d times %s, %.0f per second\n", sent, args[1], perSecond)
			return 0
		}
	}
}

// garbageSender returns a function that sends garbage once. It gets the number of earlier calls.
func garbageSender(kind string, args []string) (func(i int), error) {
	if kind == "packets" {
		return sendGarbagePackets()
	}
	low, err1 := strconv.Atoi(args[1])
	high, err2 := strconv.Atoi(args[2])
	if kind == "scan" {
		return scan(args[0], low, high), errors.Join(err1, err2)
	}
	return connectWithGarbage(args[0], low, high), errors.Join(err1, err2)
}

// sendGarbagePackets returns a function that sends one packet to the multicast group of beacons.
func sendGarbagePackets() (func(i int), error) {
	group := &net.UDPAddr{IP: net.IPv4(239, 255, 114, 122), Port: 29600}
	eth0, err := net.InterfaceByName("eth0")
	if err != nil {
		return nil, err
	}
	in, err := net.ListenMulticastUDP("udp4", eth0, group)
	if err != nil {
		return nil, err
	}
	out, err := net.DialUDP("udp4", nil, group)
	if err != nil {
		return nil, err
	}
	raw, err := out.SyscallConn()
	if err != nil {
		return nil, err
	}
	if errControl := raw.Control(func(fd uintptr) { // it does not record its own packets
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP, 0)
	}); errControl != nil || err != nil {
		return nil, errors.Join(errControl, err)
	}
	r := &recording{known: map[string]bool{}}
	go r.record(in)
	return func(i int) { _, _ = out.Write(garbagePacket(i, r.all())) }, nil
}

// garbagePacket is random, too large (once in 200), or made of a recorded one.
func garbagePacket(i int, recorded [][]byte) []byte {
	if i%200 == 0 {
		return randomBytes(20000 + mathrand.IntN(40000))
	}
	if i%3 == 0 || len(recorded) == 0 {
		return randomBytes(mathrand.IntN(1400))
	}
	packet := []byte(string(recorded[mathrand.IntN(len(recorded))]))
	words := strings.Fields(string(packet))
	if i%3 == 1 || len(words) != 7 {
		if len(packet) > 0 {
			packet[mathrand.IntN(len(packet))] ^= 1 << mathrand.IntN(8)
		}
		return packet
	}
	addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte(randomBytes(4))), uint16(i))
	words[3], words[4] = hex.EncodeToString(randomBytes(16)), hex.EncodeToString(randomBytes(4))
	words[5], words[6] = addr.String(), hex.EncodeToString(randomBytes(32))
	return []byte(strings.Join(words, " "))
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

// connectWithGarbage returns a function that connects to one of the ports and sends nothing, random
// bytes, or the beginning of a TLS record. It keeps some hundred connections open.
func connectWithGarbage(addr string, low, high int) func(i int) {
	open := make([]net.Conn, 300)
	return func(i int) {
		port := strconv.Itoa(low + i%(high-low+1))
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(addr, port), time.Second)
		if err != nil {
			return
		}
		if old := open[i%len(open)]; old != nil {
			old.Close()
		}
		open[i%len(open)] = conn
		switch i / (high - low + 1) % 3 {
		case 0:
			_, _ = conn.Write(randomBytes(1 + mathrand.IntN(5000)))
		case 1:
			_, _ = conn.Write(append([]byte{0x16, 3, 1, 0x0f, 0}, randomBytes(1000)...))
		}
	}
}

// scan returns a function that connects to one of the ports and closes the connection.
func scan(addr string, low, high int) func(i int) {
	return func(i int) {
		port := strconv.Itoa(low + i%(high-low+1))
		if conn, err := net.DialTimeout("tcp", net.JoinHostPort(addr, port),
			time.Second); err == nil {
			conn.Close()
		}
	}
}
