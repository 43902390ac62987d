import test from 'ava'
import { enginesContract } from '../../contracts/engines.ts'
import { serversOfDirectory } from '../../helpers/servers/servers-of-directory.ts'

enginesContract(test, serversOfDirectory)
