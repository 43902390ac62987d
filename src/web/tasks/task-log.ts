import { phaseMark } from '../../cli/output/lines.ts'
import { sanitize, sanitizeLine } from '../../cli/text/sanitize.ts'
import type { LogEntry, LogPage } from '../../core/protocol/http/logs.ts'
import { call, send, withQuery } from '../api.ts'
import { save } from '../parts/browser.ts'
import { type HostLine, HostLines } from './output-lines.ts'

/** Most characters that a browser can save; the command line has no limit. */
const mostSaved = 256 * 1024 * 1024
const pageSize = 500

interface LogRange {
  hostId?: number | undefined
  after?: number
  signal: AbortSignal
}

export async function download(
  taskId: string,
  host: { hostId: number; hostname: string } | undefined,
  signal: AbortSignal,
): Promise<void> {
  const file =
    host === undefined ? await taskOutput(taskId, signal) : await hostOutput(taskId, host.hostId, signal)
  save(file, [taskId, ...(host === undefined ? [] : [inFileName(host.hostname)])].join('-') + '.txt')
}

/** Output of all hosts, each line prefixed with its host. */
async function taskOutput(taskId: string, signal: AbortSignal): Promise<Blob> {
  const open = new HostLines()
  const parts: string[] = []
  let size = 0
  const add = (lines: readonly HostLine[]) => {
    if (lines.length === 0) return
    const text = lines.map((line) => `${headOf(line.about)}${sanitize(line.text)}\n`).join('')
    parts.push(text)
    size += text.length
    if (size > mostSaved) throw new Error(`Too much output for a browser: use rsm logs ${taskId}`)
  }
  for await (const { entries } of logPages(taskId, { signal }))
    for (const entry of entries) add(open.push(entry))
  add(open.finish())
  return new Blob(parts, { type: 'text/plain' })
}

/** `web1: `, `web1 [verify]: `. */
function headOf({ hostname, phase }: HostLine['about']): string {
  return `${sanitizeLine(hostname)}${phase === undefined ? '' : ` ${phaseMark(phase)}`}: `
}

/** Output of one host, byte for byte as stored. */
async function hostOutput(taskId: string, hostId: number, signal: AbortSignal): Promise<Blob> {
  const path = withQuery(`api/tasks/${encodeURIComponent(taskId)}/logs`, { hostId })
  return (await send('GET', path, { headers: { accept: 'text/plain' }, signal })).blob()
}

/** Part of a file name: replaces special characters with `_`. */
export const inFileName = (text: string) => text.replaceAll(/[^A-Za-z0-9._-]/g, '_')

/** The current log, page by page: entries, and the cursor after them. */
export async function* logPages(
  taskId: string,
  { hostId, after = 0, signal }: LogRange,
): AsyncGenerator<{ entries: readonly LogEntry[]; next: number }> {
  const path = `api/tasks/${encodeURIComponent(taskId)}/logs`
  for (;;) {
    const query = { hostId, after, size: pageSize }
    const { entries, next } = await call<LogPage>('GET', withQuery(path, query), { signal })
    if (entries.length === 0 && next === after) return
    yield { entries, next }
    after = next
  }
}
