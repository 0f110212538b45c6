// franz-go loses a committed transaction (../franz-go-transaction-sequences.md).
// fault: answer UNKNOWN_SERVER_ERROR to Produce, 1st, once, after effect
// go run franz-go-transaction-sequences.go BOOTSTRAP    # of the proxy with that fault
package main

import (
	"context"
	"fmt"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"os"
	"time"
)

func main() {
	ctx, topic := context.Background(), fmt.Sprint("shown-", time.Now().UnixNano())
	acknowledged, log, seeds := []string{}, []string{}, kgo.SeedBrokers(os.Args[1])
	client, _ := kgo.NewClient(seeds, kgo.TransactionalID(topic), kgo.DefaultProduceTopic(topic))
	kadm.NewClient(client).CreateTopics(ctx, 1, 1, nil, topic)
	for number := 0; number < 3; number++ {
		client.BeginTransaction()
		a, b := fmt.Sprint(number, "-0"), fmt.Sprint(number, "-1")
		failed := client.ProduceSync(ctx, kgo.StringRecord(a), kgo.StringRecord(b)).FirstErr()
		ended := client.EndTransaction(ctx, kgo.TransactionEndTry(failed == nil))
		fmt.Println("transaction", number, "sends:", failed, "end:", ended)
		if failed == nil && ended == nil {
			acknowledged = append(acknowledged, a, b)
		}
	}
	reader, _ := kgo.NewClient(seeds, kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); {
		wait, end := context.WithTimeout(ctx, time.Second)
		reader.PollFetches(wait).EachRecord(func(r *kgo.Record) { log = append(log, string(r.Value)) })
		end()
	}
	fmt.Println("committed:", acknowledged, "- in the log:", log)
	if len(log) != len(acknowledged) {
		os.Exit(10)
	}
}
