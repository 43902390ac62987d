import test from 'ava'
import { killedGatesContract } from '../../contracts/gates.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'

killedGatesContract(test, 'on a data directory', (t) => startServerProcess(t))
