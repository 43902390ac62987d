import { readFile, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { type Place, refusedStore, type StoreAddress } from './address.ts'

/** HOST:PORT:DATABASE:USER:PASSWORD, where a backslash makes a plain character of a colon or a backslash. */
const line = /^((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):(.*)$/
const plain = (field: string) => field.replaceAll(/\\(.)/g, '$1')

/**
 * The password that the first fitting line of ~/.pgpass, or of the file in `PGPASSFILE`, has for this place: the rules are those of
 * libpq, where `*` fits everything, and a file that others may read counts as none.
 * @throws RsmError `unavailable`, as it is asked only where PostgreSQL wants a password
 */
export async function passwordFor(address: StoreAddress, { host, port }: Place): Promise<string> {
  const file = process.env['PGPASSFILE'] ?? join(homedir(), '.pgpass')
  const refuse = (why: string, hint = 'give the password with --store-password-file, or in ~/.pgpass') =>
    refusedStore(address, `${host}:${port} asks for a password, and ${why}`, hint)
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw refuse(`${file} cannot be read: ${error.message}`)
  })
  if (text !== '' && ((await stat(file)).mode & 0o077) !== 0)
    throw refuse(`${file} is not used, as others may read it`, `chmod 600 ${file}`)
  const wanted = [host, String(port), address.database, address.user]
  for (const entry of text.split(/\r?\n/)) {
    const [, ...fields] = entry.startsWith('#') ? [] : (line.exec(entry) ?? [])
    const password = plain(fields.pop() ?? '')
    const fits = (value: string, at: number) => fields[at] === '*' || plain(fields[at] ?? '') === value
    if (password !== '' && wanted.every(fits)) return password
  }
  throw refuse(`neither --store-password-file nor ${file} has one for it`)
}
