import test from 'ava'
import { createLocalHints } from '../../../src/server/storage/local-hints.ts'
import { hintsContract } from '../../contracts/hints.ts'

hintsContract(test, async () => createLocalHints())
