// A test in Go: an idempotent producer meets a lost answer; nothing is lost and nothing is written twice.
// Run (with fencepost on the path): go test ./...
package control

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type cluster struct{ servers, url, token string }

func up(t *testing.T) cluster {
	folder := t.TempDir()
	command := exec.Command("fencepost", "cluster", "up", "--embedded", "--kafka-port", "0", "--control", "0", "--directory", folder)
	var out bytes.Buffer
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Skip("fencepost is not on the path: ", err)
	}
	t.Cleanup(func() { command.Process.Signal(os.Interrupt); command.Wait(); log.Close() })
	line := regexp.MustCompile(`bootstrap.servers=(\S+)[\s\S]*control=(\S+)`)
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		text, _ := os.ReadFile(log.Name())
		out.Reset()
		out.Write(text)
		if found := line.FindStringSubmatch(out.String()); found != nil {
			token, _ := os.ReadFile(filepath.Join(folder, "control-token"))
			return cluster{found[1], found[2], strings.TrimSpace(string(token))}
		}
	}
	t.Fatal("no cluster within ten minutes: ", out.String())
	return cluster{}
}

func (c cluster) ask(t *testing.T, verb string, arguments map[string]any) map[string]any {
	body, _ := json.Marshal(arguments)
	request, _ := http.NewRequest("POST", c.url+"/"+verb, bytes.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode != 200 {
		t.Fatalf("%s: %s", verb, text)
	}
	answer := map[string]any{}
	json.Unmarshal(text, &answer)
	return answer
}

func TestALostAnswerMakesNoDuplicate(t *testing.T) {
	c := up(t)
	c.ask(t, "create_topic", map[string]any{"name": "orders"})
	c.ask(t, "fault", map[string]any{"text": "lose answer to Produce on orders-0, once"})
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(c.servers, ",")...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	record := &kgo.Record{Topic: "orders", Value: []byte("an order")}
	if err := client.ProduceSync(context.Background(), record).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for _, assertion := range []string{"assert_no_duplicates", "assert_no_loss"} {
		if said := c.ask(t, assertion, map[string]any{}); said["ok"] != true {
			t.Fatal(said["report"])
		}
	}
}
