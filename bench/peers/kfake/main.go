// How long until a first record is acknowledged: franz-go's kfake, three brokers, franz-go as the client.
// Prints milliseconds: median, least, most. One run before the first is left out.
//
//	go run . [runs]
//
// With the word `serve` it is one broker, which prints its address and stays until its input ends.
//
//	go run . serve
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

func once() float64 {
	begun := time.Now()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(1, "t"))
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		panic(err)
	}
	defer client.Close()
	if err := client.ProduceSync(context.Background(), &kgo.Record{Topic: "t", Value: []byte("1")}).FirstErr(); err != nil {
		panic(err)
	}
	return float64(time.Since(begun).Microseconds()) / 1000
}

func serve() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	fmt.Println(cluster.ListenAddrs()[0])
	io.Copy(io.Discard, os.Stdin)
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		serve()
		return
	}
	runs := 20
	if len(os.Args) > 1 {
		runs, _ = strconv.Atoi(os.Args[1])
	}
	once()
	taken := make([]float64, runs)
	for run := range taken {
		taken[run] = once()
	}
	sort.Float64s(taken)
	fmt.Printf("kfake, 3 brokers, %d runs, milliseconds: median %.0f, least %.0f, most %.0f\n",
		runs, (taken[(runs-1)/2]+taken[runs/2])/2, taken[0], taken[runs-1])
}
