import type { Stream } from '../../core/tasks/task.ts'
import type { Colors } from './sink.ts'

/** Of the 256 colours those with a contrast of about 4 or more on white and on black; red is kept for stderr. */
const many = [130, 64, 28, 29, 31, 27, 63, 98, 129, 133, 164, 162].map((color) => `38;5;${color}`)
const basic = ['36', '35', '32', '33']

/** FNV-1a: the same name has the same colour in every run. */
function hashOf(name: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
  return hash >>> 0
}

/**
 * `HOST: ` as it stands before a line: the name in a colour of its own; of stderr it is underlined and its colon red, so
 * that whoever can't tell colours apart can tell the streams apart.
 */
export function hostPrefix(hostname: string, stream: Stream, colors: Colors): string {
  if (colors === 'none') return `${hostname}: `
  const palette = colors === 'many' ? many : basic
  const color = palette[hashOf(hostname) % palette.length] ?? '36'
  if (stream === 'stdout') return `\u001b[${color}m${hostname}:\u001b[0m `
  return `\u001b[4;${color}m${hostname}\u001b[0m\u001b[1;31m:\u001b[0m `
}
