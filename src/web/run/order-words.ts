import type { Script } from '../../core/protocol/http/scripts.ts'
import { firstLine } from '../../core/script/first-line.ts'
import { counted } from '../../ui/text/counted.ts'
import type { Asked, Order } from './use-start.ts'

/** `‘reboot’`, `the script deploy`. */
function ranSaid({ script, scriptId }: Order['body'], scripts: readonly Script[]): string {
  if (script === undefined) return `the script ${scripts.find(({ id }) => id === scriptId)?.name ?? ''}`
  const more = script.content.trim().includes('\n') ? ' …' : ''
  return `‘${firstLine(script.content) ?? ''}’${more}`
}

/** What is asked before it starts, and both answers. */
export function questionOf(
  { body, file, hosts, isFleet }: Asked,
  scripts: readonly Script[],
): { title: string; yes: string; no: string } {
  const many = `${isFleet ? 'all ' : ''}${counted(hosts.length, 'host')}`
  if (body.copy === undefined)
    return { title: `Run ${ranSaid(body, scripts)} on ${many}?`, yes: `Run on ${many}`, no: 'Don’t run' }
  const [name, path] = [file?.name ?? 'the file', body.copy.path]
  if (body.copy.check !== undefined)
    return {
      title: `Compare ${name} with ${path} on ${many}?`,
      yes: `Compare on ${many}`,
      no: 'Don’t compare',
    }
  return { title: `Copy ${name} to ${path} on ${many}?`, yes: `Copy to ${many}`, no: 'Don’t copy' }
}

/** `Run on web1`, `Copy to 3 hosts`: what the form's button says. */
export function startSaid(what: 'run' | 'copy' | 'check', where: string): string {
  const [alone, onHosts] = {
    run: ['Run', 'Run on'],
    copy: ['Copy', 'Copy to'],
    check: ['Compare', 'Compare on'],
  }[what]
  return where === '' ? (alone ?? '') : `${onHosts ?? ''} ${where}`
}
