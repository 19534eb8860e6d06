// Attaches containers to a network through Go's libcni and takes them off again, and prints how long each took, in
// milliseconds: {"ADD":[...],"DEL":[...]}. The peer of warm-ours.ts.
//
//	attach CONFLIST PLUGIN-DIR CACHE-DIR NETNS...
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/containernetworking/cni/libcni"
)

func run() error {
	list, err := libcni.ConfListFromFile(os.Args[1])
	if err != nil {
		return err
	}
	cni := libcni.NewCNIConfigWithCacheDir([]string{os.Args[2]}, os.Args[3], nil)
	took := map[string][]float64{}
	timed := func(verb, netns string) error {
		rt := &libcni.RuntimeConf{ContainerID: filepath.Base(filepath.Dir(netns)), NetNS: netns, IfName: "eth0"}
		begin := time.Now()
		var err error
		if verb == "ADD" {
			_, err = cni.AddNetworkList(context.Background(), list, rt)
		} else {
			err = cni.DelNetworkList(context.Background(), list, rt)
		}
		took[verb] = append(took[verb], float64(time.Since(begin).Microseconds())/1000)
		return err
	}
	for _, verb := range []string{"ADD", "DEL"} {
		for _, netns := range os.Args[4:] {
			if err := timed(verb, netns); err != nil {
				return err
			}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(took)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
