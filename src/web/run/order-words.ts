import { counted, showBytes } from '../../cli/text/amounts.ts'
import type { ScriptSummary } from '../../core/protocol/http/scripts.ts'
import type { TaskCreate } from '../../core/protocol/http/tasks.ts'
import { firstLine } from '../../core/scripts/script-form.ts'
import type { CopiedFile } from './copy-of.ts'
import type { Asked, Order } from './use-start.ts'

export type Doing = 'run' | 'copy' | 'check' | 'fetch'

/** `‘reboot’`, `the script deploy`. */
function scriptText({ script, scriptId }: Order['body'], scripts: readonly ScriptSummary[]): string {
  if (script === undefined) return `the script ${scripts.find(({ id }) => id === scriptId)?.name ?? ''}`
  const more = script.content.trim().includes('\n') ? ' …' : ''
  return `‘${firstLine(script.content) ?? ''}’${more}`
}

export function questionOf(
  { body, file, hosts, isFleet }: Asked,
  scripts: readonly ScriptSummary[],
): { title: string; yes: string; no: string } {
  const many = `${isFleet ? 'all ' : ''}${counted(hosts.length, 'host')}`
  if (body.fetch !== undefined)
    return { title: `Fetch ${body.fetch.path} from ${many}?`, yes: `Fetch from ${many}`, no: 'Don’t fetch' }
  if (body.copy === undefined)
    return { title: `Run ${scriptText(body, scripts)} on ${many}?`, yes: `Run on ${many}`, no: 'Don’t run' }
  const [name, path] = [file?.name ?? 'the file', body.copy.path]
  if (body.copy.check !== undefined)
    return {
      title: `Compare ${name} with ${path} on ${many}?`,
      yes: `Compare on ${many}`,
      no: 'Don’t compare',
    }
  return { title: `Copy ${name} to ${path} on ${many}?`, yes: `Copy to ${many}`, no: 'Don’t copy' }
}

/** Label of the form's button: `Run on web1`, `Copy to 3 hosts`. */
export function startText(doing: Doing, where: string): string {
  const [alone, onHosts] = {
    run: ['Run', 'Run on'],
    copy: ['Copy', 'Copy to'],
    check: ['Compare', 'Compare on'],
    fetch: ['Fetch', 'Fetch from'],
  }[doing]
  return where === '' ? (alone ?? '') : `${onHosts ?? ''} ${where}`
}

const sized = (file: CopiedFile | undefined) =>
  file === undefined ? 'a file' : `${file.name} (${showBytes(file.size)})`

/** `compare shop.conf (86 B) with /etc/shop.conf, write nothing, mode 0640`; null for scripts. */
export function filesText({ copy, fetch }: TaskCreate, file: CopiedFile | undefined): string | null {
  if (fetch !== undefined)
    return [
      `fetch ${fetch.kind === 'TREE' ? 'the directory ' : ''}${fetch.path}`,
      fetch.follow === true ? 'follow symlinks' : '',
    ]
      .filter(Boolean)
      .join(', ')
  if (copy === undefined) return null
  const { path, kind, check, mode, owner, group, backup } = copy
  const name = kind === 'TREE' ? `the content of ${sized(file)}` : sized(file)
  return [
    check === undefined ? `copy ${name} to ${path}` : `compare ${name} with ${path}, write nothing`,
    mode === undefined ? '' : `mode ${mode}`,
    owner === undefined ? '' : `owner ${owner}`,
    group === undefined ? '' : `group ${group}`,
    backup === true ? 'keep replaced files' : '',
  ]
    .filter(Boolean)
    .join(', ')
}

/** Stdin of a script; null without one. */
export const stdinText = ({ stdin }: TaskCreate, file: CopiedFile | undefined): string | null =>
  stdin === undefined ? null : sized(file)
