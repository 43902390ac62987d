import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'

export const damaged = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'

/** A root, an intermediate and a leaf for 127.0.0.1, each signed by the previous one, and an unrelated authority. */
export function authorities(t: ExecutionContext) {
  const directory = temporaryDirectory(t)
  const at = (name: string) => join(directory, name)
  const make = (name: string, by: string | null, ...extensions: string[]) => {
    const request = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2'.split(' ')
    const files = ['-subj', `/CN=${name}`, '-keyout', at(`${name}.key`), '-out', at(`${name}.pem`)]
    const signer = by === null ? [] : ['-CA', at(`${by}.pem`), '-CAkey', at(`${by}.key`)]
    const more = extensions.flatMap((extension) => ['-addext', extension])
    execFileSync('openssl', [...request, ...files, ...signer, ...more], { stdio: 'ignore' })
    return readFileSync(at(`${name}.pem`), 'utf8')
  }
  const root = make('root', null)
  const intermediate = make('intermediate', 'root')
  const leaf = make(
    'leaf',
    'intermediate',
    'basicConstraints=critical,CA:FALSE',
    'subjectAltName=IP:127.0.0.1',
  )
  const stranger = make('stranger', null)
  const file = (text: string, name = 'ca.pem') => {
    writeFileSync(at(name), text)
    return at(name)
  }
  return { root, intermediate, leaf, stranger, key: readFileSync(at('leaf.key'), 'utf8'), file }
}
