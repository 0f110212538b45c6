// kafka-go's sends fail without a retry while it keeps one error of Metadata (../kafka-go-cached-error.md).
// fault: answer LEADER_NOT_AVAILABLE to Metadata, 4th, once
// go run kafka-go-cached-error.go BOOTSTRAP    # of the proxy with that fault; needs kafka-go
package main

import (
	"context"
	"fmt"
	"github.com/segmentio/kafka-go"
	"os"
	"time"
)

func main() {
	ctx, topic, to := context.Background(), fmt.Sprint("shown-", time.Now().UnixNano()), kafka.TCP(os.Args[1])
	one := &kafka.Transport{}
	client := &kafka.Client{Addr: to, Transport: one}
	topics := []kafka.TopicConfig{{Topic: topic, NumPartitions: 1, ReplicationFactor: 1}}
	client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: topics})
	writer := &kafka.Writer{Addr: to, Topic: topic, Transport: one, RequiredAcks: kafka.RequireAll,
		MaxAttempts: 100, BatchTimeout: time.Millisecond}
	for writer.WriteMessages(ctx, kafka.Message{Value: []byte("first")}) != nil { // the topic is new
		time.Sleep(100 * time.Millisecond)
	}
	failed, longest, begun := 0, time.Duration(0), time.Now()
	for time.Since(begun) < 30*time.Second {
		sent := time.Now()
		if writer.WriteMessages(ctx, kafka.Message{Value: []byte("next")}) != nil {
			failed, longest = failed+1, max(longest, time.Since(sent))
		}
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Println("one Metadata with an error:", failed, "sends with 100 attempts failed, each within", longest.Round(time.Millisecond))
	if failed > 0 {
		os.Exit(10)
	}
}
