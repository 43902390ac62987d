import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import base from './ava.config.js'

/** Faults to survive, wherever a file holds one: its title carries the fault's number. */
const numbers = Array.from({ length: 20 }, (_, at) => `F${String(at + 1).padStart(2, '0')}`)
const title = /['"`](?:P\d+ )?F(?:0[1-9]|1[0-9]|20) /

const files = readdirSync('dist/test', { recursive: true })
  .map((name) => join('dist/test', name))
  .filter((file) => file.endsWith('.test.js') && !file.startsWith('dist/test/faults/long/'))
  .filter((file) => title.test(readFileSync(file, 'utf8')))

export default { ...base, files, match: numbers.flatMap((number) => [`${number} *`, `P?? ${number} *`]) }
