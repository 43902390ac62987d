import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { boolean, string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { auditFilter, auditFlags } from '../../cli/flags/audit.ts'
import { mayReplace } from '../../cli/input/prompt.ts'
import { showBytes } from '../../cli/text/amounts.ts'
import { jsonText, sanitize } from '../../cli/text/sanitize.ts'
import { auditVerifier, linesOf } from '../../client/services/audit.ts'
import { writeWholeFile } from '../../client/whole-file.ts'
import { type AuditEntry, showHead } from '../../core/audit.ts'
import { RsmError } from '../../core/errors.ts'

const formats = ['jsonl', 'csv'] as const

export default class AuditExport extends BaseCommand {
  static override summary = 'Write the audit log to a file, oldest entry first (for administrators)'
  static override description =
    'The file has mode 0600 and gets its name once it is complete; a lost connection is resumed. jsonl is the log as the ' +
    'server stores it: without a filter, the chain of hashes is verified during the export, and `rsm audit verify --file` ' +
    'can verify it again anywhere. csv is for spreadsheets. Without -o, or with -o -, it goes to stdout.'
  static override examples = [
    '$ rsm audit export -o audit.jsonl',
    '$ rsm audit export --since 7d --action task.create --format csv -o tasks.csv',
    '$ rsm audit export | gzip > audit.jsonl.gz',
  ]
  static override flags = {
    ...auditFlags,
    format: string({
      options: [...formats],
      default: 'jsonl',
      description: 'jsonl: lines of JSON; csv: a table',
    }),
    output: string({ char: 'o', helpValue: 'FILE', description: 'file to write, - for stdout' }),
    yes: boolean({ char: 'y', description: 'replace an existing file' }),
  }

  async run() {
    const { flags } = await this.parse(AuditExport)
    const file = flags.output === '-' ? undefined : flags.output
    if (file === undefined && flags.json)
      throw new RsmError('usage', 'stdout is for the log', { hint: 'name a file, or leave out --json' })
    const filter = auditFilter(flags)
    if (file !== undefined) await mayReplace(file, flags.yes)
    const client = await this.client()
    // A filter breaks the chain of hashes.
    const verifier = Object.keys(filter).length === 0 ? auditVerifier() : null
    const lines = client.audit.lines(filter)
    let entries = 0
    const isOnScreen = file === undefined && process.stdout.isTTY
    async function* written(): AsyncGenerator<Uint8Array | string> {
      if (flags.format === 'csv') yield auditCsvHeader
      for await (const block of lines) {
        let rows = ''
        for (const line of linesOf(block)) {
          verifier?.line(line)
          entries++
          if (flags.format === 'csv') rows += auditCsvRow(line.toString('utf8'))
        }
        const bytes = flags.format === 'csv' ? Buffer.from(rows) : block
        yield isOnScreen ? sanitize(Buffer.from(bytes).toString('utf8')) : bytes
      }
    }
    const stream = Readable.from(written(), { objectMode: false })
    if (file === undefined) await pipeline(stream, process.stdout, { end: false })
    const bytes = file === undefined ? null : await writeWholeFile(file, stream)
    const fault = verifier?.end() ?? null
    const said = `${entries === 1 ? '1 entry' : `${entries} entries`}${bytes === null ? '' : `, ${showBytes(bytes)}`}`
    if (fault !== null)
      throw new RsmError(
        'conflict',
        `the audit log was written as it is (${said}), but it is not what the server wrote: ${fault.sentence}`,
      )
    const head = verifier === null ? null : showHead(verifier.head)
    if (file !== undefined) this.done(`${file}: ${said}${head === null ? '' : `, sound, head ${head}`}`)
    return file === undefined ? undefined : { file, format: flags.format, entries, bytes, head }
  }
}

type Cell = string | number | null

const columns: Readonly<Record<string, (entry: AuditEntry) => Cell>> = {
  id: ({ id }) => id,
  at: ({ at }) => at,
  actorType: ({ actor }) => actor.type,
  actorId: ({ actor }) => actor.id,
  actorName: ({ actor }) => actor.name,
  tokenId: ({ actor }) => actor.tokenId,
  ip: ({ ip }) => ip,
  action: ({ action }) => action,
  objectType: ({ object }) => object?.type ?? null,
  objectId: ({ object }) => object?.id ?? null,
  objectName: ({ object }) => object?.name ?? null,
  outcome: ({ outcome }) => outcome,
  detail: ({ detail }) => jsonText(detail),
  hash: ({ hash }) => hash,
}

/** RFC 4180. A ' before text that spreadsheets would treat as a formula, because names are untrusted. */
function cellOf(value: Cell): string {
  if (value === null) return ''
  const text = String(value)
  const plain = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain
}

const row = (cells: readonly Cell[]) => `${cells.map(cellOf).join(',')}\n`

const auditCsvHeader = row(Object.keys(columns))

/** CSV row of a log line; empty if the line is not an entry. */
function auditCsvRow(line: string): string {
  try {
    const entry = JSON.parse(line) as AuditEntry
    return row(Object.values(columns).map((cell) => cell(entry)))
  } catch {
    return ''
  }
}
