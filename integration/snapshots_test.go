package integration

import (
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// runTrainer is a worker that trains as a program for restarts does, without torch:
//
//	trainer DIR
//
// Its ranks form a group at MASTER_PORT, which fails unless all are of the same attempt. Rank 0 writes
// DIR/snapshot after each epoch, and the next attempt continues from it. When DIR/finish exists all
// end with 0, and rank 0 prints its parameters. What each leaves in DIR is in enterAttempt. It exits
// with 7 on SIGUSR1 and with 93, after which there is no restart, on SIGUSR2. On SIGTERM it saves for
// 0.5 to 2 s, up to twice --grace, and exits with 0. Rank 0 draws a progress bar.
func runTrainer(args []string) int {
	rank, err1 := strconv.Atoi(os.Getenv("RANK"))
	size, err2 := strconv.Atoi(os.Getenv("WORLD_SIZE"))
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		code := map[os.Signal]int{syscall.SIGUSR1: failCode, syscall.SIGUSR2: 93}[<-asked]
		fmt.Fprintln(os.Stderr, "no batch", crand.Text()) // another message in each attempt
		os.Exit(code)
	}()
	var saving sync.Mutex
	go saveOnSIGTERM(&saving)
	err := errors.Join(err1, err2)
	if err == nil {
		err = enterAttempt(args[0])
	}
	if err == nil {
		err = train(args[0], rank, size)
	}
	saving.Lock()
	if err != nil {
		return reportError(err)
	}
	return 0
}

// saveOnSIGTERM ends the worker when it has saved. Meanwhile it holds saving, so that the worker does
// not end earlier because another rank has ended.
func saveOnSIGTERM(saving *sync.Mutex) {
	signal.Ignore(syscall.SIGABRT) // not caught, as in Python
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	<-terminated
	saving.Lock()
	time.Sleep(restartGrace/2 + rand.N(restartGrace*3/2))
	os.Exit(0)
}

// enterAttempt starts the children of startBeats, and writes "PID MASTER_PORT RANK CHILD", of the one
// in another session, to DIR/ATTEMPT/RANK. What is left of earlier attempts, processes or a socket
// that listens on their MASTER_PORT, it adds to DIR/alive. A zombie is not left: its agent may be
// frozen.
func enterAttempt(dir string) error {
	attempt, err := strconv.Atoi(os.Getenv("RDZV_ATTEMPT"))
	if err != nil {
		return err
	}
	port, rank := os.Getenv("MASTER_PORT"), os.Getenv("RANK")
	if left := leftOf(dir, attempt, port); left != "" {
		name := filepath.Join(dir, "alive")
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		fmt.Fprintf(file, "attempt %d rank %s: %s\n", attempt, rank, left)
		file.Close()
	}
	child, err := startBeats(dir, strconv.Itoa(attempt), rank, "ignore")
	if err != nil {
		return err
	}
	own := filepath.Join(dir, strconv.Itoa(attempt))
	if err := os.Mkdir(own, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	text := fmt.Sprintln(os.Getpid(), port, rank, child)
	draft := filepath.Join(dir, fmt.Sprint("draft", os.Getpid()))
	if err := os.WriteFile(draft, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(draft, filepath.Join(own, rank))
}

func leftOf(dir string, attempt int, port string) (left string) {
	for old := range attempt {
		files, _ := filepath.Glob(filepath.Join(dir, strconv.Itoa(old), "*"))
		for _, file := range files {
			var pid, child, oldPort, rank int
			text, _ := os.ReadFile(file)
			if _, err := fmt.Sscan(string(text), &pid, &oldPort, &rank, &child); err != nil {
				continue
			}
			for _, p := range []int{pid, child} {
				if syscall.Kill(p, 0) == nil && stateOf(p) != "Z" {
					left += fmt.Sprintf(" process %d of rank %d of attempt %d", p, rank, old)
				}
			}
			if rank != 0 || strconv.Itoa(oldPort) == port || os.Getenv("LOCAL_RANK") != "0" {
				continue
			}
			l, err := net.Listen("tcp", fmt.Sprint(":", oldPort))
			if err != nil {
				left += fmt.Sprintf(" port %d of attempt %d: %v", oldPort, old, err)
				continue
			}
			l.Close()
		}
	}
	return left
}

// A trained value is what the ranks have computed after an epoch.
type trained struct {
	Epoch      int
	Parameters uint64
	Last       bool // this epoch
}

// next is the value after one more epoch of so many ranks.
func (v trained) next(size int) trained {
	var sum uint64
	for rank := range size {
		sum += v.gradient(rank)
	}
	return trained{Epoch: v.Epoch + 1, Parameters: v.Parameters ^ sum}
}

func (v trained) gradient(rank int) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, v.Parameters, v.Epoch, rank)
	return h.Sum64()
}

// String is what rank 0 prints at the end.
func (v trained) String() string { return fmt.Sprintf("%016x after epoch %d", v.Parameters, v.Epoch) }

// trainedUntil is the value of a training that nothing has disturbed.
func trainedUntil(epoch, size int) (v trained) {
	for v.Epoch < epoch {
		v = v.next(size)
	}
	return v
}

// trainHello is what a rank sends to rank 0 first: all must have the same, except for their ranks.
type trainHello struct {
	Rank               int
	Run, Attempt, Port string
}

const epochTime = 10 * time.Millisecond

// train runs this rank. Every rank sends its gradient to rank 0 and gets the new value.
func train(dir string, rank, size int) error {
	served := make(chan error, 1)
	if rank == 0 {
		master, err := net.Listen("tcp", ":"+os.Getenv("MASTER_PORT"))
		if err != nil {
			return err
		}
		go func() { served <- serveTraining(dir, master, size) }()
	} else {
		served <- nil
	}
	conn, err := dialMaster()
	if err != nil {
		return err
	}
	defer conn.Close()
	send, receive := json.NewEncoder(conn), json.NewDecoder(conn)
	env := os.Getenv
	var v trained
	err = send.Encode(trainHello{rank, env("RDZV_RUN_ID"), env("RDZV_ATTEMPT"), env("MASTER_PORT")})
	if err == nil {
		err = receive.Decode(&v)
	}
	for err == nil && !v.Last {
		if err = send.Encode(v.gradient(rank)); err == nil {
			err = receive.Decode(&v)
		}
	}
	if err != nil {
		if rank == 0 {
			err = <-served
		}
		return fmt.Errorf("rank %d: Connection closed by peer: %w", rank, err)
	}
	return <-served
}

// serveTraining computes the epochs, with the gradients of all ranks.
func serveTraining(dir string, master net.Listener, size int) error {
	defer master.Close()
	conns := make([]net.Conn, size)
	defer func() {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
	}()
	receive := make([]*json.Decoder, size)
	for range size {
		conn, err := master.Accept()
		if err != nil {
			return err
		}
		var h trainHello
		d := json.NewDecoder(conn)
		if err := d.Decode(&h); err != nil {
			conn.Close()
			return err
		}
		own := trainHello{h.Rank, os.Getenv("RDZV_RUN_ID"), os.Getenv("RDZV_ATTEMPT"),
			os.Getenv("MASTER_PORT")}
		if h != own || conns[h.Rank] != nil {
			name := filepath.Join(dir, "mixed")
			_ = os.WriteFile(name, fmt.Appendf(nil, "%+v has joined %+v", h, own), 0o600)
			return fmt.Errorf("a rank of another attempt has connected: %+v", h)
		}
		conns[h.Rank], receive[h.Rank] = conn, d
	}
	return trainEpochs(dir, conns, receive)
}

func trainEpochs(dir string, conns []net.Conn, receive []*json.Decoder) error {
	v, err := loadSnapshot(dir)
	tick := time.NewTicker(epochTime)
	defer tick.Stop()
	for err == nil {
		for _, conn := range conns {
			err = errors.Join(err, json.NewEncoder(conn).Encode(v))
		}
		fmt.Fprintf(os.Stderr, "\repoch %d", v.Epoch)
		if v.Last {
			fmt.Println("parameters", v)
			return err
		}
		var sum uint64
		for _, d := range receive {
			var gradient uint64
			err = errors.Join(err, d.Decode(&gradient))
			sum += gradient
		}
		if err != nil {
			break
		}
		next := trained{Epoch: v.Epoch + 1, Parameters: v.Parameters ^ sum}
		if err = saveSnapshot(dir, next); err != nil {
			break
		}
		_, statErr := os.Stat(filepath.Join(dir, "finish"))
		next.Last = statErr == nil
		v = next
		<-tick.C
	}
	return err
}

func loadSnapshot(dir string) (v trained, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "snapshot"))
	if os.IsNotExist(err) {
		return v, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	return v, err
}

func saveSnapshot(dir string, v trained) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	draft := filepath.Join(dir, "snapshot.new")
	if err := os.WriteFile(draft, text, 0o600); err != nil {
		return err
	}
	return os.Rename(draft, filepath.Join(dir, "snapshot"))
}
