
 
aConst