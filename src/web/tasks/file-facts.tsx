import { transferParts } from '../../cli/files/transfer-text.ts'
import { showBytes } from '../../cli/text/bytes.ts'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import { LongName } from '../parts/long-name.tsx'

type Row = readonly [label: string, value: string | undefined]

const checks = {
  CHANGED: 'dry run: which hosts would change',
  DIFF: 'dry run: how the text would change',
} as const
const kinds = { FILE: 'one file', TREE: 'a directory and all that is in it' } as const

/** `27 B`, `4.2 MB (4194321 bytes)`. */
const sizeSaid = (size: number) => (size < 1000 ? showBytes(size) : `${showBytes(size)} (${size} bytes)`)

function rowsOf({ copy, fetch, limitRate, transfer }: TaskSummary): Row[] {
  const carried: Row = [
    'So far',
    transfer ? transferParts(transfer.bytes, transfer.total, transfer.bytesPerSecond).join(' · ') : undefined,
  ]
  const rate: Row = [
    'Rate',
    limitRate === null ? undefined : `at most ${showBytes(limitRate)}/s to all hosts`,
  ]
  if (copy !== null) {
    const { file, path, kind, mode, owner, group, backup, check } = copy
    return [
      ['To', path],
      ['What', check === undefined ? kinds[kind] : `${kinds[kind]}, ${checks[check]}`],
      ['Size', sizeSaid(file.size)],
      ['SHA-256', file.sha256],
      ['Mode', mode],
      ['Owner', owner],
      ['Group', group],
      ['Backup', backup === true ? 'keeps what it replaces' : undefined],
      rate,
      carried,
    ]
  }
  if (fetch === null) return []
  const { path, kind, follow } = fetch
  return [
    ['From', path],
    ['What', kinds[kind]],
    ['Symlinks', follow === true ? 'followed' : undefined],
    rate,
    carried,
  ]
}

/** Which file a task copies or fetches, and how; nothing of other tasks. */
export function FileFacts({ task }: { task: TaskSummary }) {
  const rows = rowsOf(task)
  if (rows.length === 0) return null
  return (
    <dl class="file-facts" aria-label="File">
      {rows.map(
        ([label, value]) =>
          value !== undefined && (
            <div key={label}>
              <dt>{label}</dt>
              <dd>
                <LongName text={sanitizeLine(value)} />
              </dd>
            </div>
          ),
      )}
    </dl>
  )
}
