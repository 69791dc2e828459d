import { chromium } from "playwright-core";
import http from "node:http"; import fs from "node:fs"; import path from "node:path";
const root="../out/web"; const types={".html":"text/html",".js":"text/javascript",".css":"text/css",".wasm":"application/wasm"};
const server=http.createServer((q,a)=>{const f=path.join(root,q.url.split(/[?#]/)[0].replace(/\/$/,"/index.html"));if(!fs.existsSync(f)){a.writeHead(404);a.end();return}a.writeHead(200,{"content-type":types[path.extname(f)]||"x"});fs.createReadStream(f).pipe(a)}).listen(0);
const port=server.address().port;
const b=await chromium.launch({executablePath:"/usr/bin/chromium",args:["--no-sandbox"]});
const [,,name,hash="",w="1300",h="1500",scheme="light",...acts]=process.argv;
const p=await b.newPage({viewport:{width:+w,height:+h},colorScheme:scheme});
p.on("console",m=>console.log("console",m.text()));p.on("pageerror",e=>console.log("error",e.message, e.stack));p.on("requestfailed",r=>console.log("failed",r.url()));
const t=Date.now();await p.goto(`http://localhost:${port}/${hash}`);
await p.waitForSelector("canvas",{timeout:60000}).catch(e=>console.log(String(e)));console.log("first picture",Date.now()-t);
await p.waitForSelector("body[data-done=true]",{timeout:60000}).catch(e=>console.log(String(e)));
for(const act of acts){ await (new Function("p",`return (async()=>{${act}})()`))(p); await p.waitForTimeout(600); await p.waitForSelector("body[data-done=true]",{timeout:60000});}
console.log(await p.textContent("#status"));
await p.screenshot({path:`/tmp/w/${name}.png`});await b.close();server.close();
