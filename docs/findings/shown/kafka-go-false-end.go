// kafka-go says io.EOF, "the reader has been closed", of a reader that is open (../kafka-go-false-end.md).
// fault: cut after JoinGroup, at most 12 times
// go run kafka-go-false-end.go BOOTSTRAP    # of the proxy with that fault; needs kafka-go
package main

import (
	"context"
	"errors"
	"fmt"
	"github.com/segmentio/kafka-go"
	"io"
	"os"
	"time"
)

func main() {
	ctx, topic, to := context.Background(), fmt.Sprint("shown-", time.Now().UnixNano()), kafka.TCP(os.Args[1])
	topics := []kafka.TopicConfig{{Topic: topic, NumPartitions: 1, ReplicationFactor: 1}}
	(&kafka.Client{Addr: to}).CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: topics})
	writer := &kafka.Writer{Addr: to, Topic: topic, RequiredAcks: kafka.RequireAll}
	for writer.WriteMessages(ctx, kafka.Message{Value: []byte("first")}) != nil { // the topic is new
		time.Sleep(100 * time.Millisecond)
	}
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: os.Args[1:2], GroupID: topic, Topic: topic,
		StartOffset: kafka.FirstOffset, JoinGroupBackoff: time.Second})
	ends := 0
	for {
		message, err := reader.FetchMessage(ctx)
		if err == nil {
			fmt.Println("an open reader said io.EOF", ends, "times, and then read:", string(message.Value))
			break
		}
		if errors.Is(err, io.EOF) {
			ends++
		}
	}
	if ends > 0 {
		os.Exit(10)
	}
}
