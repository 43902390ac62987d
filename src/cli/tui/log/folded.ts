import type { LogEntry } from '../../../core/protocol/http/logs.ts'
import { foldNodeset } from '../../../core/selector/nodeset.ts'
import { groupsOf, titleOf } from '../../output/equal-output.ts'
import { type LogLine, LogLines } from './lines.ts'
import { type Find, scan, startOf } from './search.ts'
import type { NumberedLines } from './viewport.ts'

/** Host id of title lines, which are not output. */
export const titleId = -1

const titled = (text: string): LogLine => ({ id: 0, hostId: titleId, hostname: '', stream: 'stdout', text })

/** Output of all hosts with equal output once, as `-b` shows it: both streams in order of arrival. */
export class FoldedLog implements NumberedLines {
  readonly first = 0
  readonly #lines: readonly LogLine[]

  /** `silent`: hosts without output. */
  constructor(entries: readonly LogEntry[], silent: readonly string[]) {
    const assembled = new LogLines()
    const written = new Map<string, LogLine[]>()
    const ended = entries.flatMap((entry) => assembled.push(entry))
    for (const line of [...ended, ...assembled.open()]) {
      const lines = written.get(line.hostname)
      if (lines === undefined) written.set(line.hostname, [line])
      else lines.push(line)
    }
    const shown = (lines: readonly LogLine[]) =>
      lines.map(({ stream, text }) => `${stream} ${text}`).join('\n')
    const groups = groupsOf([...written].map(([hostname, lines]) => [shown(lines), [hostname]] as const))
    this.#lines = [
      ...groups.flatMap((group) => [
        titled(titleOf(group)),
        ...(written.get(group.hostnames[0] ?? '') ?? []),
      ]),
      ...(silent.length === 0 ? [] : [titled(`no output: ${foldNodeset(silent)}`)]),
    ]
  }

  get end(): number {
    return this.#lines.length
  }

  line(number: number): LogLine | undefined {
    return this.#lines[number]
  }

  /** The number of the next matching line of output, or null. */
  find(find: Find): number | null {
    const matches = (line: LogLine) => line.hostId !== titleId && find.matches(line)
    return scan(this, { ...find, matches }, startOf(find))
  }
}
