import test from 'ava'
import { createLocalHints } from '../../src/server/local-hints.ts'
import { hintsContract } from '../contracts/hints.ts'

hintsContract(test, async () => createLocalHints())
