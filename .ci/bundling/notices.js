// The notices that the licences of bundled packages ask for.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './bundling.js'

/** The directory of the package that a file is of; undefined for a file of rsm. */
const packageOf = (file) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]

/** Name, version, licence and its text, package by package; `files` by their paths within the checkout. */
export function noticesOf(files) {
  const packages = [...new Set(files.map((file) => packageOf(file)).filter((found) => found !== undefined))]
  const notices = packages.map((directory) => {
    const at = join(root, directory)
    const { name, version, license, licenses } = JSON.parse(readFileSync(join(at, 'package.json'), 'utf8'))
    const called = readdirSync(at).find((file) => /^(licen[cs]e|copying)/i.test(file))
    const text = called === undefined ? '' : readFileSync(join(at, called), 'utf8').trim()
    const kind = license?.type ?? license ?? licenses?.map(({ type }) => type).join(' or ')
    if (kind === undefined && text === '') throw new Error(`${directory} says nothing of its licence`)
    return `${name} ${version} (${kind ?? 'see below'})\n${text === '' ? '' : `\n${text}\n`}`
  })
  const line = `\n${'-'.repeat(78)}\n\n`
  return `rsm holds parts of these packages.\n${line}${[...new Set(notices)].sort().join(line)}`
}
