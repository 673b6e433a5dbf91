package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"rdzv/envmap"
	"rdzv/rdzv/presence"
)

// options are the flags of exec and env.
type options struct {
	launcher string
	job      string
	nodes    int
	procs    string // --nproc-per-node: N, auto, gpu, cpu; "" is one worker per task

	store     string
	tokenFile string
	net       []string
	ports     string
	portLo    int
	portHi    int
	insecure  bool

	joinTimeout time.Duration
	peerTimeout time.Duration
	grace       time.Duration
	exitTimeout time.Duration

	masterPort int
	device     string
	set        []string
	as         string
	noCapture  bool
	report     string

	quiet   bool
	verbose bool
}

const (
	defaultPorts       = "29600-29999" // below the ephemeral range of Linux, 32768-60999
	defaultJoinTimeout = 10 * time.Minute
	defaultGrace       = 10 * time.Second
)

// define adds the flags that exec and env share.
func (o *options) define(f *pflag.FlagSet) {
	f.StringVar(&o.launcher, "launcher", "", "")
	f.StringVar(&o.job, "job", "", "")
	f.IntVar(&o.nodes, "nodes", 0, "")
	f.StringVar(&o.procs, "nproc-per-node", "", "")
	f.IntVar(&o.masterPort, "master-port", 0, "")
	f.StringVar(&o.device, "device", string(envmap.DeviceIndex), "")
	f.StringArrayVar(&o.set, "set", nil, "")
	f.StringVar(&o.as, "as", "", "")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "")
}

// defineExec adds the flags that only exec has.
func (o *options) defineExec(f *pflag.FlagSet) {
	f.StringVar(&o.store, "store", "", "")
	f.StringVar(&o.tokenFile, "token-file", "", "")
	f.StringSliceVar(&o.net, "net", nil, "")
	f.StringVar(&o.ports, "port-range", defaultPorts, "")
	f.BoolVar(&o.insecure, "insecure", false, "")
	f.DurationVar(&o.joinTimeout, "join-timeout", defaultJoinTimeout, "")
	f.DurationVar(&o.peerTimeout, "peer-timeout", presence.DefaultTimeout, "")
	f.DurationVar(&o.grace, "grace", defaultGrace, "")
	f.DurationVar(&o.exitTimeout, "exit-timeout", 0, "")
	f.BoolVar(&o.noCapture, "no-capture", false, "")
	f.StringVar(&o.report, "report", "", "")
}

// check refuses values that mean nothing. It finds them all at once.
func (o *options) check() error {
	var errs []error
	wrong := func(flag string, value any, why string) {
		errs = append(errs, fmt.Errorf("cannot run exec: --%s %v: %s", flag, value, why))
	}
	if o.nodes < 0 {
		wrong("nodes", o.nodes, "must be 1 or more")
	}
	if o.masterPort < 0 || o.masterPort > 65535 {
		wrong("master-port", o.masterPort, "must be 1 to 65535, or 0 for any")
	}
	var err error
	if o.portLo, o.portHi, err = portRange(o.ports); err != nil {
		wrong("port-range", o.ports, err.Error())
	}
	if o.peerTimeout < presence.MinTimeout {
		wrong("peer-timeout", o.peerTimeout, fmt.Sprintf("must be %v or more", presence.MinTimeout))
	}
	for flag, d := range map[string]time.Duration{"join-timeout": o.joinTimeout, "grace": o.grace, "exit-timeout": o.exitTimeout} {
		if d < 0 {
			wrong(flag, d, "must not be negative")
		}
	}
	if o.as != "" && o.as != "openmpi" {
		wrong("as", strconv.Quote(o.as), `must be "openmpi"`)
	}
	return errors.Join(errs...)
}

func portRange(s string) (lo, hi int, err error) {
	from, to, isRange := strings.Cut(s, "-")
	if !isRange {
		to = from
	}
	lo, errLo := strconv.Atoi(from)
	hi, errHi := strconv.Atoi(to)
	if errLo != nil || errHi != nil || lo < 1 || hi > 65535 || lo > hi {
		return 0, 0, errors.New("must be LOW-HIGH within 1 to 65535")
	}
	return lo, hi, nil
}
