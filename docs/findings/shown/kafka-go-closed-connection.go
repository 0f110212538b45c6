// kafka-go tries a send again and again on connections that were closed long ago (../kafka-go-closed-connection.md).
// fault: cut after Produce, at most 20 times
// go run kafka-go-closed-connection.go BOOTSTRAP    # of the proxy with that fault; needs kafka-go
package main

import (
	"context"
	"fmt"
	"github.com/segmentio/kafka-go"
	"os"
	"sync"
	"time"
)

func main() {
	ctx, topic, to := context.Background(), fmt.Sprint("shown-", time.Now().UnixNano()), kafka.TCP(os.Args[1])
	topics := []kafka.TopicConfig{{Topic: topic, NumPartitions: 20, ReplicationFactor: 1}}
	(&kafka.Client{Addr: to}).CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: topics})
	time.Sleep(5 * time.Second) // the topic is new
	writer := &kafka.Writer{Addr: to, Topic: topic, RequiredAcks: kafka.RequireAll, Balancer: &kafka.RoundRobin{}}
	var all sync.WaitGroup
	for range 20 { // a partition each; all are answered, then their connections end
		all.Go(func() { fmt.Print(writer.WriteMessages(ctx, kafka.Message{Value: []byte("first")}), " ") })
	}
	all.Wait()
	time.Sleep(5 * time.Second)
	sent := time.Now()
	err := writer.WriteMessages(ctx, kafka.Message{Value: []byte("next")})
	fmt.Println("\na send by the default settings, five seconds later:", err, "after", time.Since(sent).Round(time.Second))
	if err != nil {
		os.Exit(10)
	}
}
