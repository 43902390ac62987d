import type { TerminalClient } from '../storage/ports/terminal-client.ts'
import type { TerminalRecord } from '../storage/records/terminal.ts'
import type { InputQueue } from './input-queue.ts'
import type { Replay } from './replay.ts'
import type { Watchers } from './watchers.ts'

/** What a terminal shows of itself. */
interface Greeted {
  readonly record: TerminalRecord
  readonly replay: Replay
  readonly watchers: Watchers
  readonly host: { readonly input: Pick<InputQueue, 'typed'> }
}

/** The first that a client hears: what there is, where it begins, and who reads along. */
export function greet(
  client: TerminalClient,
  { record, replay, watchers, host }: Greeted,
  { from, watching }: { from: number; watching: boolean },
): void {
  const { id: sessionId, hostname, cols, rows, recorded } = record
  const { names } = watchers
  if (client.acknowledges) {
    const omitted = replay.omittedAfter(from)
    const after = (replay.after(from)?.sequence ?? from + 1) - 1
    const facts = { sessionId, hostname, cols, rows, after, omitted, recorded, watching }
    client.send('TERMINAL_ATTACHED', {
      ...facts,
      last: replay.last,
      watchers: names,
      typed: host.input.typed,
    })
  } else if (!watching)
    for (const name of names) client.tell({ sessionId, kind: 'watched', message: `${name} reads along` })
}
