import type { TarEntry } from '../tar.ts'

/** Too large to be compared or shown as text. */
export const large = Buffer.alloc(3_000_000, 'large ')
/** A long name. */
export const long = `${'a'.repeat(120)}/${'b'.repeat(150)}`

/** A tree with everything that a tar may hold for a copy. */
export const site: TarEntry[] = [
  { name: './', type: 'directory', mode: 0o755 },
  { name: 'index.html', mode: 0o640, content: '<p>one\n' },
  { name: 'css/', type: 'directory', mode: 0o750 },
  { name: 'css/main.css', mode: 0o755, content: 'p {}\n' },
  { name: 'closed/', type: 'directory', mode: 0o555 },
  { name: 'closed/file', content: 'in a directory that is not writable.' },
  { name: 'empty/', type: 'directory', mode: 0o755 },
  { name: 'current', type: 'symlink', linkname: 'css/main.css' },
  { name: 'outside', type: 'symlink', linkname: '/etc/hostname' },
  { name: 'implied/way/large', mode: 0o600, content: large },
  { name: `ünï/${long}`, content: 'long' },
]
