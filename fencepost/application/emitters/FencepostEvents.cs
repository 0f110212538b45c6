using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Security.Cryptography;
using System.Text;
/// <summary>Writes what an application does, one JSON line an event. Copy this file; it needs .NET alone. One object
/// for each producer or consumer: events.Write("processed", "topic", "orders", "partition", 0, "offset", 41L);</summary>
public sealed class FencepostEvents : IDisposable {
    private readonly FileStream file;
    private readonly string process;
    private long n;
    public FencepostEvents(string path, string name, string group) {
        file = new FileStream(path, FileMode.Append, FileAccess.Write, FileShare.ReadWrite, 1);
        process = name + "-" + Process.GetCurrentProcess().Id;
        Write("started", "version", 1, "group", group);
    }
    /// <summary>Names and values in turn; null is left out. key, value: byte[] or string, of which hashes are written.</summary>
    public void Write(string kind, params object[] fields) {
        lock (file) {
            var line = new StringBuilder("{\"event\":" + Quoted(kind) + ",\"process\":" + Quoted(process) + ",\"n\":" + n++);
            for (int i = 0; i < fields.Length; i += 2) {
                object value = (string)fields[i] == "key" || (string)fields[i] == "value" ? Hash(fields[i + 1]) : fields[i + 1];
                if (value == null) continue;
                line.Append(',').Append(Quoted((string)fields[i])).Append(':');
                line.Append(value is string ? Quoted((string)value) : value is bool ? ((bool)value ? "true" : "false") : value.ToString());
            }
            byte[] bytes = Encoding.UTF8.GetBytes(line.Append("}\n").ToString());
            file.Write(bytes, 0, bytes.Length);
            file.Flush();
        }
    }
    static string Hash(object data) {
        byte[] bytes = data as byte[] ?? (data == null ? null : Encoding.UTF8.GetBytes(data.ToString()));
        if (bytes == null) return null; else using (var sha = SHA256.Create()) return BitConverter.ToString(sha.ComputeHash(bytes), 0, 8).Replace("-", "").ToLowerInvariant();
    }
    static string Quoted(string text) { return "\"" + text.Replace("\\", "\\\\").Replace("\"", "\\\"").Replace("\n", " ") + "\""; }
    /// <summary>At an orderly end, when every result has been written.</summary>
    public void Dispose() { Write("stopped"); file.Dispose(); }
}
