// A kfake cluster that obeys lines on standard input and ends with it.
//
//	first line of output      NODE=HOST:PORT for each broker, separated by spaces
//	remove NODE               the broker leaves the cluster
//	add NODE PORT             it is back on its port
//	answer to each            ok, or error and a sentence
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fail(err)
	}
	// kfake numbers its brokers from 0, everything else here from 1. Its controller is the last one that it
	// begins with, so that this one has to stay.
	cluster, err := kfake.NewCluster(kfake.NumBrokers(count))
	if err != nil {
		fail(err)
	}
	defer cluster.Close()
	if _, _, err := cluster.AddNode(int32(count), 0); err != nil {
		fail(err)
	}
	if err := cluster.RemoveNode(0); err != nil {
		fail(err)
	}
	var addresses []string
	for place, address := range cluster.ListenAddrs() {
		// the broker that was added last has taken the place of the one that was removed
		node := place
		if place == 0 {
			node = count
		}
		addresses = append(addresses, fmt.Sprintf("%d=%s", node, address))
	}
	fmt.Println(strings.Join(addresses, " "))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := obey(cluster, strings.Fields(lines.Text())); err != nil {
			fmt.Println("error", err)
		} else {
			fmt.Println("ok")
		}
	}
}

func obey(cluster *kfake.Cluster, words []string) error {
	numbers := make([]int, 0, len(words))
	for _, word := range words[min(1, len(words)):] {
		number, err := strconv.Atoi(word)
		if err != nil {
			return err
		}
		numbers = append(numbers, number)
	}
	switch {
	case len(words) == 2 && words[0] == "remove":
		return cluster.RemoveNode(int32(numbers[0]))
	case len(words) == 3 && words[0] == "add":
		_, _, err := cluster.AddNode(int32(numbers[0]), numbers[1])
		return err
	}
	return fmt.Errorf("unknown line: %q", words)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
