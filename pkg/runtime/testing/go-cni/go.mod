module tscni/runtime/testing/go-cni

go 1.23

require github.com/containerd/go-cni v1.1.13

require (
	github.com/containernetworking/cni v1.3.0 // indirect
	github.com/petermattis/goid v0.0.0-20240813172612-4fcff4a6cae7 // indirect
	github.com/sasha-s/go-deadlock v0.3.5 // indirect
)
