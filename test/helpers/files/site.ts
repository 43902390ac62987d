import type { TarEntry } from '../tar.ts'

/** Larger than what is compared or shown as text. */
export const large = Buffer.alloc(3_000_000, 'large ')
/** A name of many characters. */
export const long = `${'a'.repeat(120)}/${'b'.repeat(150)}`

/** A tree with all that a tar may hold for a copy. */
export const site: TarEntry[] = [
  { name: './', type: 'directory', mode: 0o755 },
  { name: 'index.html', mode: 0o640, content: '<p>one\n' },
  { name: 'css/', type: 'directory', mode: 0o750 },
  { name: 'css/main.css', mode: 0o755, content: 'p {}\n' },
  { name: 'closed/', type: 'directory', mode: 0o555 },
  { name: 'closed/file', content: 'in a directory that nobody writes in' },
  { name: 'empty/', type: 'directory', mode: 0o755 },
  { name: 'current', type: 'symlink', linkname: 'css/main.css' },
  { name: 'outside', type: 'symlink', linkname: '/etc/hostname' },
  { name: 'implied/way/large', mode: 0o600, content: large },
  { name: `ünï/${long}`, content: 'long' },
]
