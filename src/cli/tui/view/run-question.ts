import { canBeReached } from '../../../core/hosts/host-status.ts'
import type { Host } from '../../../core/protocol/http/hosts.ts'
import { foldNodeset } from '../../../core/selector/nodeset.ts'
import { shortened } from '../../../core/text/shortened.ts'
import { counted } from '../../text/counted.ts'
import { sanitizeLine } from '../../text/sanitize.ts'
import { partsOf } from '../log/viewport.ts'
import type { Span } from '../screen/screen.ts'

const longestNames = 400
const widest = 70

export function runQuestion(
  command: string,
  hosts: readonly Pick<Host, 'hostname' | 'status' | 'agent'>[],
  server: string,
  cols: number,
): Span[][] {
  const wrapped = (text: string) => partsOf(sanitizeLine(text), Math.max(1, Math.min(widest, cols - 6)))
  const lines = (text: string, style: Span['style'] = {}) =>
    wrapped(text).map((part): Span[] => [{ text: part, style }])
  const away = hosts.filter((host) => !canBeReached(host)).length
  const names = shortened(foldNodeset(hosts.map(({ hostname }) => hostname)), longestNames, '...')
  return [
    ...lines(`Run on ${counted(hosts.length, 'host')} of ${server}?`, { bold: true }),
    [],
    ...lines(command, { fg: 'cyan' }),
    [],
    ...lines(names),
    ...(away === 0 ? [] : lines(`${away} of them can't be reached now`, { fg: 'red' })),
    [],
    [{ text: 'y', style: { bold: true } }, { text: '  run it; any other key does not' }],
  ]
}
