#!/usr/bin/env node
// Makes what people install, into packages/ or `--out DIR`: the npm package (`npm`). Needs `npm run build`.
import { mkdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { packNpm } from './packaging/npm.js'

const makers = { npm: packNpm }

const { values, positionals } = parseArgs({
  options: { out: { type: 'string', default: 'packages' } },
  allowPositionals: true,
})
for (const name of positionals)
  if (!(name in makers))
    throw new Error(`nothing is called ${name}; there are ${Object.keys(makers).join(', ')}`)
const out = resolve(values.out)
mkdirSync(out, { recursive: true })
for (const [name, make] of Object.entries(makers))
  if (positionals.length === 0 || positionals.includes(name)) make(out)
